#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::cli {

/// Text from elsewhere (keys, values, names, errors) for a terminal, which it may not steer:
/// control characters, those that change the direction of text, and what is not UTF-8 as \xNN. What
/// machines read is not for this.
[[nodiscard]] std::string printable(std::string_view text);

/// The same, but lines stay lines and tabs tabs.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// At most so many bytes, not ending within a character of UTF-8.
[[nodiscard]] std::string_view head(std::string_view text, std::size_t most);

}  // namespace pawl::cli
