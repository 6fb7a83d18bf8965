#include "console/unknown_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pawl::cli {
namespace {

/// Empty: nothing is like it.
std::string likeness(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  // Of four letters two others are another word.
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
  // Optimal string alignment: rows of `one`, of which the last two are looked back at.
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
  if (words.empty())
    return {};
  const auto& first = words.front();
  std::vector<std::string> names;
  if (first.starts_with('-')) {
    for (const auto& option : command.options) {
      if (!option.by_place)
        names.insert(names.end(), option.names.begin(), option.names.end());
    }
  } else {
    for (const auto& subcommand : command.subcommands)
      names.push_back(subcommand.name);
  }
  const auto like = likeness(first.substr(0, first.find('=')), names);
  return fmt::format("not expected: {}{}", fmt::join(words, " "),
                     like.empty() ? "" : fmt::format("; did you mean {}?", like));
}

}  // namespace pawl::cli
