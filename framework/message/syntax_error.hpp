#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pawl::message {

/// A place in a text of the configuration. Both count from 1; columns count characters, not bytes.
struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;

  friend bool operator==(const TextPosition&, const TextPosition&) = default;
};

/// The place of a byte of `text`; a byte beyond the end is the place just after the text.
[[nodiscard]] TextPosition position_of(std::string_view text, std::size_t byte);

/// A text of the configuration (template, condition, SQL) that cannot be understood. what() is
/// "column 5: PROBLEM; WHAT TO DO", or "line 2, column 5: ..." in a text of several lines. The text
/// comes from the configuration and not from a message, so its parts may be quoted.
class SyntaxError : public std::runtime_error {
 public:
  /// `problem` says what is wrong at `byte` of `text` and ends with what to do.
  SyntaxError(std::string_view text, std::size_t byte, const std::string& problem);

  [[nodiscard]] TextPosition position() const { return position_; }
  [[nodiscard]] std::size_t line() const { return position_.line; }
  [[nodiscard]] std::size_t column() const { return position_.column; }
  /// The problem without the position.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  TextPosition position_;
  std::string problem_;
};

/// A template or placeholder that cannot be understood.
class TemplateError : public SyntaxError {
 public:
  using SyntaxError::SyntaxError;
};

/// A `when` condition that cannot be understood.
class ConditionError : public SyntaxError {
 public:
  using SyntaxError::SyntaxError;
};

}  // namespace pawl::message
