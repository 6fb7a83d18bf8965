#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::handlers {

/// What a statement is, as far as putting it into another one needs to know.
struct SqlShape {
  std::string first;      ///< its first word, in capitals
  bool has_with = false;  ///< the word WITH stands anywhere, maybe in a type
  bool returns = false;   ///< it has RETURNING
  /// Where its own part begins: behind the queries of a WITH at its beginning.
  std::size_t main = 0;
  std::string main_word;  ///< the word there, in capitals; empty: a bracket
};

[[nodiscard]] SqlShape shape_of(std::string_view sql);

}  // namespace pawl::handlers
