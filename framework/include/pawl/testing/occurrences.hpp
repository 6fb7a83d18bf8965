#pragma once

// Whether a program has printed a line exactly once.
//
//   #include <pawl/testing/occurrences.hpp>
//   #include <string>
//
//   bool started_once(const std::string& log) {
//     return pawl::testing::occurrences(log, "consumer_started") == 1;
//   }

#include <string_view>

namespace pawl::testing {

/// The number of occurrences of `part` in `text`, overlapping ones included. `part` must not be
/// empty.
[[nodiscard]] inline int occurrences(std::string_view text, std::string_view part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace pawl::testing
