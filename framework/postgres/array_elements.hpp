#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::postgres {

/// Elements for one-dimensional arrays, collected one by one; arrays are made of all or of some of
/// them, in PostgreSQL's text form: {"a\"b","",NULL,3}. Reusable: clear() keeps the memory. Not
/// thread-safe.
class ArrayElements {
 public:
  void clear();

  /// Must not contain NUL, which PostgreSQL's text cannot hold; what binds the array refuses it.
  void add_text(std::string_view text);
  /// An element of bytea[].
  void add_bytes(std::string_view bytes);
  void add_integer(std::int64_t number);
  void add_null();

  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  /// Takes off the elements behind the first `size`.
  void truncate(std::size_t size);

  [[nodiscard]] std::string array() const;
  /// Of the elements with these indexes, in their order.
  [[nodiscard]] std::string array_of(std::span<const std::uint32_t> indexes) const;

 private:
  void end_element();

  std::string text_;               // each element with a comma behind it
  std::vector<std::size_t> ends_;  // of each element, behind its comma
};

}  // namespace pawl::postgres
