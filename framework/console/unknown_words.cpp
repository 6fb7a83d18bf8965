#include "console/unknown_words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::cli {
namespace {

/// The name that the word resembles most; empty: none does.
std::string likeness(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  // A word of four characters with two others is another word.
  std::size_t least = word.size() <= 4 ? 2 : 3;
  for (const auto& name : names) {
    const auto errors = typing_errors(word, name);
    if (errors < least) {
      least = errors;
      best = name;
    }
  }
  return best;
}

}  // namespace

std::size_t typing_errors(std::string_view one, std::string_view other) {
  // Optimal string alignment: each row depends on the two before it.
  std::vector<std::vector<std::size_t>> errors(one.size() + 1,
                                               std::vector<std::size_t>(other.size() + 1));
  for (std::size_t i = 0; i <= one.size(); ++i) {
    for (std::size_t j = 0; j <= other.size(); ++j) {
      auto& here = errors[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const bool same = one[i - 1] == other[j - 1];
      here = std::min(
          {errors[i - 1][j] + 1, errors[i][j - 1] + 1, errors[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
        here = std::min(here, errors[i - 2][j - 2] + 1);
    }
  }
  return errors[one.size()][other.size()];
}

std::string unknown_words_text(const CommandTree& command, const std::vector<std::string>& words) {
  // It only ends the options.
  const auto found = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return word != "--"; });
  if (found == words.end())
    return {};
  const auto& first = *found;
  const bool is_option = first.starts_with('-');
  std::vector<std::string> names;
  if (is_option) {
    for (const auto& option : command.options) {
      if (!option.by_place)
        names.insert(names.end(), option.names.begin(), option.names.end());
    }
  } else {
    for (const auto& subcommand : command.subcommands)
      names.push_back(subcommand.name);
  }
  const auto word = first.substr(0, is_option ? first.find('=') : std::string::npos);
  const auto like = likeness(word, names);
  return fmt::format("{} {}{}",
                     is_option                     ? "unknown option"
                     : command.subcommands.empty() ? "unexpected argument"
                                                   : "unknown command",
                     word, like.empty() ? "" : fmt::format(". Did you mean {}?", like));
}

}  // namespace pawl::cli
