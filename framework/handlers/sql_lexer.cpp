#include "handlers/sql_lexer.hpp"

#include <algorithm>

namespace pawl::handlers {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80U;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::size_t begin) : text_(text), begin_(begin), at_(begin) {}

  SqlToken next() {
    const char c = peek();
    if (is_space(c)) {
      skip_while(is_space);
      return token(SqlTokenKind::kWhiteSpace);
    }
    if (starts_with("--"))
      return line_comment();
    if (starts_with("/*"))
      return block_comment();
    if (c == '\'')
      return string(false);
    if (c == '"')
      return quoted(SqlTokenKind::kQuotedIdentifier, '"', false);
    if (c == '$')
      return dollar();
    if (c == ';')
      return single(SqlTokenKind::kSemicolon);
    if (is_digit(c)) {
      // As in PostgreSQL, a parameter or a string in dollar quotes may follow at once.
      skip_while([](char d) { return is_word_start(d) || is_digit(d) || d == '.'; });
      return token(SqlTokenKind::kNumber);
    }
    if (is_word_start(c))
      return word();
    return single(SqlTokenKind::kOther);
  }

 private:
  SqlToken word() {
    const bool escape_string = (peek() == 'e' || peek() == 'E') && peek(1) == '\'';
    if (escape_string) {
      ++at_;
      return string(true);
    }
    skip_while(is_sql_word_character);
    return token(SqlTokenKind::kWord);
  }

  // An E'' string goes on, with its escapes, when nothing but white space with a newline and line
  // comments stands before the next quote. For plain strings it makes no difference.
  SqlToken string(bool escapes) {
    SqlToken result = quoted(SqlTokenKind::kString, '\'', escapes);
    while (escapes && result.closed) {
      const std::size_t end = at_;
      if (!skip_to_continuation()) {
        at_ = end;
        break;
      }
      result = quoted(SqlTokenKind::kString, '\'', escapes);
    }
    return result;
  }

  bool skip_to_continuation() {
    bool newline = false;
    while (starts_with("--") || is_space(peek())) {
      if (is_space(peek())) {
        newline = newline || peek() == '\n' || peek() == '\r';
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      }
    }
    return newline && peek() == '\'';
  }

  // at_ is the opening quote. A doubled quote is a character of the content.
  SqlToken quoted(SqlTokenKind kind, char quote, bool escapes) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (escapes && peek() == '\\') {
        ++at_;
      } else if (peek() == quote) {
        if (peek(1) != quote) {
          ++at_;
          return token(kind);
        }
        ++at_;
      }
    }
    return cut_off(kind);
  }

  SqlToken line_comment() {
    at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    return token(SqlTokenKind::kComment);
  }

  SqlToken block_comment() {
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      if (starts_with("/*")) {
        ++depth;
        at_ += 2;
      } else if (starts_with("*/")) {
        --depth;
        at_ += 2;
        if (depth == 0)
          return token(SqlTokenKind::kComment);
      } else {
        ++at_;
      }
    }
    return cut_off(SqlTokenKind::kComment);
  }

  SqlToken dollar() {
    ++at_;
    if (is_digit(peek())) {
      skip_while(is_digit);
      return token(SqlTokenKind::kParameter);
    }
    if (is_word_start(peek())) {
      skip_while([](char c) { return is_word_start(c) || is_digit(c); });
    }
    if (peek() != '$') {
      at_ = begin_ + 1;
      return token(SqlTokenKind::kOther);
    }
    ++at_;
    const std::string_view delimiter = text_.substr(begin_, at_ - begin_);
    const std::size_t close = text_.find(delimiter, at_);
    if (close == std::string_view::npos)
      return cut_off(SqlTokenKind::kString);
    at_ = close + delimiter.size();
    return token(SqlTokenKind::kString);
  }

  SqlToken single(SqlTokenKind kind) {
    ++at_;
    return token(kind);
  }

  SqlToken cut_off(SqlTokenKind kind) {
    at_ = text_.size();
    SqlToken result = token(kind);
    result.closed = false;
    return result;
  }

  [[nodiscard]] SqlToken token(SqlTokenKind kind) const { return {kind, at_, true}; }
  [[nodiscard]] bool starts_with(std::string_view prefix) const {
    return text_.substr(at_).starts_with(prefix);
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  template <typename Predicate>
  void skip_while(Predicate predicate) {
    while (at_ < text_.size() && predicate(text_[at_]))
      ++at_;
  }

  std::string_view text_;
  std::size_t begin_;
  std::size_t at_;
};

}  // namespace

std::string sql_keyword(std::string_view word) {
  std::string result{word};
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return result;
}

bool is_sql_word_character(char c) {
  return is_word_start(c) || is_digit(c) || c == '$';
}

SqlToken next_sql_token(std::string_view text, std::size_t begin) {
  return Lexer{text, begin}.next();
}

}  // namespace pawl::handlers
