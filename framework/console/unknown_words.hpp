#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console/command_tree.hpp"

namespace pawl::cli {

/// The error for words of a command line that the command does not have: it names the first of
/// them, and the option or command that resembles it. Empty: there are no such words.
[[nodiscard]] std::string unknown_words_text(const CommandTree& command,
                                             const std::vector<std::string>& words);

/// How many characters must be inserted, deleted, replaced, or swapped with the next one.
[[nodiscard]] std::size_t typing_errors(std::string_view one, std::string_view other);

}  // namespace pawl::cli
