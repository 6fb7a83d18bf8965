#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::postgres {

/// The bind parameters of one statement, in libpq's form. Reusable: clear() keeps the memory.
/// Not thread-safe; owned by one worker.
class Parameters {
 public:
  void clear();

  /// Text format; must not contain NUL (PostgreSQL's text has none): throws std::invalid_argument.
  void add_text(std::string_view text);
  void add_optional_text(const std::optional<std::string>& text);
  /// An empty text becomes NULL.
  void add_text_or_null(std::string_view text);
  void add_integer(std::int64_t number);
  void add_optional_integer(const std::optional<std::int64_t>& number);
  void add_null();
  /// Binary format, for bytea parameters.
  void add_bytes(std::string_view bytes);
  void add_optional_bytes(const std::optional<std::string_view>& bytes);

  /// Of all values together.
  [[nodiscard]] std::size_t bytes() const { return arena_.size(); }
  /// Without the one of view_with().
  [[nodiscard]] int count() const { return static_cast<int>(positions_.size()); }

  /// Pointers into this object, valid until the next change.
  struct View {
    const char* const* values;
    const int* lengths;
    const int* formats;
  };
  [[nodiscard]] View view();
  /// The same with one more text behind the others, NULL if it is empty. It must stay where it is.
  [[nodiscard]] View view_with(const std::string& last);

 private:
  static constexpr std::size_t kNull = std::string::npos;

  void add(std::string_view bytes, int format);
  void add_entry(std::size_t position, int length, int format);

  std::string arena_;
  std::vector<std::size_t> positions_;  ///< of each value in arena_, or kNull
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

}  // namespace pawl::postgres
