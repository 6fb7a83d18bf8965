#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::texts {

/// Characters of PostgreSQL's primary message, and of its hint, in any text for people: both may
/// quote values of a message.
inline constexpr std::size_t kLongestQuote = 200;
/// Characters of any other text that says why something failed: of an exception, a broker, a remote
/// service.
inline constexpr std::size_t kLongestCause = 2000;
/// Characters of a text that holds a cause, its place, and the commands that help: a warning or an
/// error in the log, the detail of an alert, the reason of a halt in `/status`, a command's error.
inline constexpr std::size_t kLongestLine = 4000;

/// The first `most` characters of UTF-8, at most four bytes each whatever they are. A text that was
/// longer ends with how much of it is omitted: "abc... (899997 bytes omitted)".
[[nodiscard]] std::string bounded(std::string_view text, std::size_t most);

}  // namespace pawl::texts
