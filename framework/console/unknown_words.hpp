#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "console/command_tree.hpp"

namespace pawl::cli {

/// What is said of words of a command line, in its order, that the command does not know; with the
/// name of its own that the first one is most like.
[[nodiscard]] std::string unknown_words_text(const CommandTree& command,
                                             const std::vector<std::string>& words);

/// How many letters must be put in, left out, changed, or swapped with the next one.
[[nodiscard]] std::size_t typing_errors(std::string_view one, std::string_view other);

}  // namespace pawl::cli
