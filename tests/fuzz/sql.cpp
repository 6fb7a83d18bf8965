// The SQL lexer, and the parser of a handler's statements, which is built on it.
#include <vector>

#include "fuzz.hpp"
#include "handlers/array_cast.hpp"
#include "handlers/sql_lexer.hpp"
#include "handlers/sql_shape.hpp"
#include "handlers/sql_text.hpp"
#include "handlers/written_names.hpp"

using namespace pawl::handlers;
using pawl::fuzzing::require;

namespace {

using Kind = SqlTokenKind;

struct Token {
  Kind kind;
  std::string_view text;
  bool closed;
};

/// The tokens are the text: none is empty, and each begins where the one before ends.
std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const auto token = next_sql_token(text, at);
    require(token.end > at, "a token is not empty");
    require(token.end <= text.size(), "a token ends within the text");
    require(token.closed || token.end == text.size(), "only the last token can be cut off");
    tokens.push_back({token.kind, text.substr(at, token.end - at), token.closed});
    at = token.end;
  }
  return tokens;
}

bool is_space(char c) {
  return std::string_view{" \t\n\r\f\v"}.find(c) != std::string_view::npos;
}

/// What PostgreSQL's scanner (scan.l) requires of a token's text, written down a second time.
void check_token(const Token& token) {
  const auto text = token.text;
  const auto all = [&](auto predicate) {
    for (const char c : text) {
      if (!predicate(c))
        return false;
    }
    return true;
  };
  switch (token.kind) {
    case Kind::kWhiteSpace:
      require(all(is_space), "white space is white space");
      break;
    case Kind::kComment:
      if (text.starts_with("--")) {
        require(text.find_first_of("\r\n") == std::string_view::npos, "a line comment is one line");
      } else {
        require(text.starts_with("/*"), "a comment has a beginning");
        require(!token.closed || text.ends_with("*/"), "a comment has an end");
      }
      break;
    case Kind::kWord:
      require(all(is_sql_word_character), "a word has characters of words");
      break;
    case Kind::kQuotedIdentifier:
      require(text.starts_with('"') && (!token.closed || (text.size() > 1 && text.ends_with('"'))),
              "a quoted name is in quotes");
      break;
    case Kind::kString: {
      const bool dollar = text.starts_with('$');
      require(!token.closed || text.ends_with(dollar ? '$' : '\''), "a string has an end");
      break;
    }
    case Kind::kNumber:
      require(
          text.front() >= '0' && text.front() <= '9' && text.find('$') == std::string_view::npos,
          "a number begins with a digit, and has no dollar");
      break;
    case Kind::kParameter:
      require(text.starts_with('$') && text.size() > 1 &&
                  text.find_first_not_of("0123456789", 1) == std::string_view::npos,
              "a parameter is $ and digits");
      break;
    case Kind::kSemicolon:
      require(text == ";", "a semicolon is one");
      break;
    case Kind::kOther:
      require(text.size() == 1, "another token is one character");
      break;
  }
}

bool is_gap(const Token& token) {
  return token.kind == Kind::kWhiteSpace || token.kind == Kind::kComment;
}

/// Where the part of an E'' string that begins at `at` ends; npos: the text cuts it off.
std::size_t end_of_part(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\' || text.substr(at).starts_with("''"))
      ++at;
    else if (text[at] == '\'')
      return at + 1;
  }
  return std::string_view::npos;
}

/// The quote that continues an E'' string whose part ends at `at`: white space with a line break,
/// and line comments, precede it. npos: there is none.
std::size_t continuation(std::string_view text, std::size_t at) {
  bool newline = false;
  bool comment = false;
  for (; at < text.size(); ++at) {
    const bool line_break = text[at] == '\n' || text[at] == '\r';
    comment = !line_break && (comment || text.substr(at).starts_with("--"));
    newline = newline || line_break;
    if (!comment && !is_space(text[at]))
      return newline && text[at] == '\'' ? at : std::string_view::npos;
  }
  return std::string_view::npos;
}

void check_escape_string(std::string_view text, const Token& token) {
  if (token.kind != Kind::kString || (token.text.front() != 'E' && token.text.front() != 'e'))
    return;
  const auto begin = static_cast<std::size_t>(token.text.data() - text.data());
  auto end = end_of_part(text, begin + 1);
  while (end != std::string_view::npos) {
    const auto next = continuation(text, end);
    if (next == std::string_view::npos)
      break;
    end = end_of_part(text, next);
  }
  require(token.closed == (end != std::string_view::npos), "an E'' string is closed", text);
  require(!token.closed || begin + token.text.size() == end, "an E'' string ends at its quote",
          text);
}

void check_cut(std::string_view text) {
  // A token does not depend on what precedes it, and lexing its text alone gives the same token.
  for (const auto& token : tokens_of(text)) {
    check_token(token);
    check_escape_string(text, token);
    if (!token.closed)
      continue;
    const auto alone = next_sql_token(token.text, 0);
    require(alone.kind == token.kind && alone.end == token.text.size() && alone.closed,
            "a token alone is the same token", token.text);
  }
}

/// Statement and parameters agree: $1 to $n in this order, and nothing else of the text has
/// changed.
void check_statement(const SqlText& parsed, std::string_view written, bool numbered) {
  const auto& sql = parsed.sql();
  std::size_t parameters = 0;
  bool content = false;
  for (const auto& token : tokens_of(sql)) {
    require(token.closed, "the statement's quotes and comments are closed", sql);
    require(token.kind != Kind::kSemicolon, "a statement has no semicolon", sql);
    content = content || !is_gap(token);
    if (token.kind == Kind::kParameter && !numbered) {
      ++parameters;
      require(token.text == "$" + std::to_string(parameters), "parameters are numbered in order",
              sql);
    }
  }
  require(content, "a statement is not empty", written);
  if (!numbered)
    require(parameters == parsed.parameters().size(), "each placeholder is one parameter", sql);
  require(is_copy(sql) == false, "COPY is refused", sql);
}

void parse_handlers_text(std::string_view text) {
  try {
    const auto parsed = SqlText::parse(text);
    check_statement(parsed, text, false);
    for (const auto& parameter : parsed.parameters())
      require(parameter.is_single_placeholder(), "a parameter is one placeholder", parsed.sql());
  } catch (const pawl::message::SyntaxError&) {
  }
  try {
    const auto parsed = SqlText::parse_batch(text);
    check_statement(parsed, text, false);
    require(SqlText::parse(text).sql() == parsed.sql(), "a batch's statement is a statement", text);
  } catch (const pawl::message::SyntaxError&) {
  }
  std::string numbered;
  try {
    numbered = SqlText::parse_numbered(text);
  } catch (const pawl::message::SyntaxError&) {
    return;
  }
  require(SqlText::parse_numbered(numbered) == numbered, "a parsed statement parses to itself",
          numbered);
}

}  // namespace

void fuzz(std::string_view input) {
  check_cut(input);
  parse_handlers_text(input);
  (void)is_cast_to_array(input);
  (void)is_copy(input);
  const auto shape = shape_of(input);
  require(shape.main <= input.size(), "the main part is within the text");
  for (const auto& name : written_names(input))
    require(!name.empty(), "a written name is not empty");
  (void)dblink_calls(input);
}
