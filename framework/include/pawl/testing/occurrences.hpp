#pragma once

#include <string_view>

namespace pawl::testing {

/// How often a part stands in a text, as in what a process has printed.
[[nodiscard]] inline int occurrences(std::string_view text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace pawl::testing
