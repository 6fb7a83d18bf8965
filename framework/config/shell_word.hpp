#pragma once

#include <string>

namespace pawl {

/// A text as one word for a shell (POSIX, Shell Command Language, 2.2), for commands that people
/// paste. One that begins with - is an option to most programs all the same.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace pawl
