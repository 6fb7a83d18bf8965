#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::message {

/// A text that is no JSON pointer; `byte` is the place in it.
class JsonPointerError : public std::runtime_error {
 public:
  JsonPointerError(std::size_t byte, const std::string& what)
      : std::runtime_error(what), byte_(byte) {}
  [[nodiscard]] std::size_t byte() const { return byte_; }

 private:
  std::size_t byte_;
};

/// A path into a JSON document (RFC 6901): "" is the whole document, "/a/0" the first element of
/// the array under "a", "/" the member whose name is empty; in names "~1" stands for "/" and "~0"
/// for "~". Immutable, any thread.
class JsonPointer {
 public:
  /// One step of the path: a member's name, or where an array is met, an index.
  struct Token {
    std::string name;
    /// The name as an array index, where it is one ("0", or digits without a leading zero). "-",
    /// the RFC's element after the last, never exists and so is none.
    std::optional<std::size_t> index;
  };

  /// Throws JsonPointerError.
  [[nodiscard]] static JsonPointer parse(std::string_view text);
  /// A member's name as it stands in a pointer.
  [[nodiscard]] static std::string escaped(std::string_view name);

  [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }

 private:
  std::vector<Token> tokens_;
};

}  // namespace pawl::message
