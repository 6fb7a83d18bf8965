#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::redis {

/// A command's name and its arguments; any bytes.
using Command = std::vector<std::string>;

/// What Redis answered to a command.
struct Reply {
  enum class Type { kNil, kInteger, kText, kArray, kError };
  Type type = Type::kNil;
  std::int64_t integer = 0;
  std::string text;  ///< kText: any bytes; kError: the whole line
  std::vector<Reply> items;

  [[nodiscard]] bool is_error() const { return type == Type::kError; }
};

/// "an integer", "nothing", ... for error texts.
[[nodiscard]] std::string_view describe(Reply::Type type);

/// Reads an array's items; throws Error (kMalformed) where they are not what they are taken for.
class ItemReader {
 public:
  /// All three are kept by reference. `command`: what the array is the answer to.
  ItemReader(const Reply& reply, std::string_view server, std::string_view command);

  [[nodiscard]] const std::string& text(std::size_t index) const;
  [[nodiscard]] std::int64_t integer(std::size_t index) const;

 private:
  [[nodiscard]] const Reply& item(std::size_t index, Reply::Type type) const;

  const Reply& reply_;
  std::string_view server_;
  std::string_view command_;
};

}  // namespace pawl::redis
