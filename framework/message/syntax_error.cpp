#include "message/syntax_error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::message {
namespace {

std::string describe(std::string_view text, TextPosition position, const std::string& problem) {
  if (text.find('\n') == std::string_view::npos) {
    return fmt::format("column {}: {}", position.column, problem);
  }
  return fmt::format("line {}, column {}: {}", position.line, position.column, problem);
}

}  // namespace

TextPosition position_of(std::string_view text, std::size_t byte) {
  TextPosition position;
  for (const char c : text.substr(0, std::min(byte, text.size()))) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {  // not a continuation byte
      ++position.column;
    }
  }
  return position;
}

SyntaxError::SyntaxError(std::string_view text, std::size_t byte, const std::string& problem)
    : std::runtime_error(describe(text, position_of(text, byte), problem)),
      position_(position_of(text, byte)),
      problem_(problem) {}

}  // namespace pawl::message
