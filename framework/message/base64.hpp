#pragma once

#include <string>
#include <string_view>

namespace pawl::message {

/// RFC 4648, section 4, in one line.
[[nodiscard]] std::string base64(std::string_view bytes);
/// Throws std::invalid_argument when it is no base64.
[[nodiscard]] std::string from_base64(std::string_view text);

}  // namespace pawl::message
