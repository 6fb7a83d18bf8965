#pragma once

#include <string>
#include <string_view>

namespace pawl::message {

/// Two lower-case digits a byte.
[[nodiscard]] std::string hexadecimal(std::string_view bytes);

}  // namespace pawl::message
