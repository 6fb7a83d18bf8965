#include "testing/postgres_wire.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <stdexcept>

namespace pawl::testing {

namespace {

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

/// Takes a zero-terminated text off the front.
std::string_view take_text(std::string_view& body) {
  const auto end = body.find('\0');
  if (end == std::string_view::npos) {
    throw std::runtime_error{
        "a message of the client contains an unterminated text. Is it the protocol of PostgreSQL?"};
  }
  const auto text = body.substr(0, end);
  body.remove_prefix(end + 1);
  return text;
}

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

template <typename Predicate>
std::size_t skip_while(std::string_view sql, std::size_t at, Predicate predicate) {
  while (at < sql.size() && predicate(sql[at])) {
    ++at;
  }
  return at;
}

std::size_t end_of_line(std::string_view sql, std::size_t at) {
  return std::min(sql.find_first_of("\r\n", at), sql.size());
}

/// Behind the quote that closes the one at `at`. A doubled quote ends one literal and begins the
/// next: the same for us, as is a continuation, but for escapes.
std::size_t end_of_quoted(std::string_view sql, std::size_t at, bool escapes) {
  const char quote = sql[at];
  for (++at; at < sql.size(); ++at) {
    if (escapes && (sql[at] == '\\' || sql.substr(at, 2) == "''")) {
      ++at;
    } else if (sql[at] == quote) {
      return at + 1;
    }
  }
  return sql.size();
}

/// Of E'', which goes on behind white space with a line break, and line comments.
std::size_t end_of_escape_string(std::string_view sql, std::size_t at) {
  std::size_t end = end_of_quoted(sql, at, true);
  while (true) {
    std::size_t next = end;
    bool line_break = false;
    while (next < sql.size() && (is_space(sql[next]) || sql.substr(next).starts_with("--"))) {
      line_break = line_break || sql[next] == '\n' || sql[next] == '\r';
      next = is_space(sql[next]) ? next + 1 : end_of_line(sql, next);
    }
    if (!line_break || next == sql.size() || sql[next] != '\'') {
      return end;
    }
    end = end_of_quoted(sql, next, true);
  }
}

std::size_t end_of_block_comment(std::string_view sql, std::size_t at) {
  std::size_t depth = 0;
  do {
    const auto two = sql.substr(at, 2);
    const bool bracket = two == "/*" || two == "*/";
    depth = two == "/*" ? depth + 1 : two == "*/" ? depth - 1 : depth;
    at += bracket ? 2 : 1;
  } while (at < sql.size() && depth > 0);
  return std::min(at, sql.size());
}

/// Of a parameter, or a literal in dollar quotes.
std::size_t end_of_dollar(std::string_view sql, std::size_t at) {
  const auto digits = skip_while(sql, at + 1, is_digit);
  const auto tag = skip_while(sql, at + 1, is_word);
  if (digits > at + 1) {
    return digits;
  }
  if (tag == sql.size() || sql[tag] != '$') {
    return at + 1;
  }
  const auto delimiter = sql.substr(at, tag + 1 - at);
  const auto closing = sql.find(delimiter, tag + 1);
  return closing == std::string_view::npos ? sql.size() : closing + delimiter.size();
}

/// Where the word, literal, comment, or character that begins at `at` ends (manual, "Lexical
/// Structure").
std::size_t end_of_token(std::string_view sql, std::size_t at) {
  const auto rest = sql.substr(at);
  if (rest.starts_with("--")) {
    return end_of_line(sql, at);
  }
  if (rest.starts_with("/*")) {
    return end_of_block_comment(sql, at);
  }
  if (rest.starts_with('\'') || rest.starts_with('"')) {
    return end_of_quoted(sql, at, false);
  }
  if (rest.starts_with("E'") || rest.starts_with("e'")) {
    return end_of_escape_string(sql, at + 1);
  }
  if (rest.starts_with('$')) {
    return end_of_dollar(sql, at);
  }
  if (is_digit(sql[at])) {
    return skip_while(sql, at, [](char c) { return is_word(c) || c == '.'; });
  }
  if (is_word(sql[at])) {
    return skip_while(sql, at, [](char c) { return is_word(c) || c == '$'; });
  }
  return at + 1;
}

bool ends_transaction(std::string_view word) {
  std::string lower{word};
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return lower == "commit" || lower == "end";
}

}  // namespace

void WireStream::append(std::string_view bytes) {
  buffer_.erase(0, position_);
  position_ = 0;
  buffer_.append(bytes);
}

std::optional<WireMessage> WireStream::next() {
  constexpr std::uint32_t kMostBytes = 1U << 30U;  // PostgreSQL's own limit
  const std::string_view rest = std::string_view{buffer_}.substr(position_);
  const std::size_t head = typed_ ? 1 : 0;
  if (rest.size() < head + 4) {
    return std::nullopt;
  }
  const std::uint32_t length = read_u32(rest.substr(head));
  if (length < 4 || length > kMostBytes) {
    throw std::runtime_error{"a message has an invalid length. Is it the protocol of PostgreSQL?"};
  }
  if (rest.size() < head + length) {
    return std::nullopt;
  }
  position_ += head + length;
  return WireMessage{typed_ ? rest.front() : '\0', rest.substr(head + 4, length - 4),
                     rest.substr(0, head + length)};
}

std::uint32_t opening_code(const WireMessage& message) {
  if (message.body.size() < 4) {
    throw std::runtime_error{
        "the first message of the connection is too short. Is it the protocol of PostgreSQL?"};
  }
  return read_u32(message.body);
}

bool commits(std::string_view sql) {
  bool first = true;  // the next token is a statement's first
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = sql.substr(at, end_of_token(sql, at) - at);
    at += token.size();
    if (is_space(token.front()) || token.starts_with("--") || token.starts_with("/*")) {
      continue;
    }
    if (first && ends_transaction(token)) {
      return true;
    }
    first = token == ";";
  }
  return false;
}

std::optional<WireStatement> StatementTracker::read(const WireMessage& message) {
  std::string_view body = message.body;
  switch (message.type) {
    case 'Q': {
      const auto sql = take_text(body);
      return WireStatement{std::string{sql}, commits(sql)};
    }
    case 'P': {  // Parse: statement name, SQL
      const std::string name{take_text(body)};
      const auto sql = take_text(body);
      prepared_[name] = {std::string{sql}, commits(sql)};
      return std::nullopt;
    }
    case 'B': {  // Bind: portal name, statement name
      const std::string portal{take_text(body)};
      const auto found = prepared_.find(take_text(body));
      portals_[portal] = found == prepared_.end() ? WireStatement{} : found->second;
      return std::nullopt;
    }
    case 'E': {  // Execute: portal name
      const auto found = portals_.find(take_text(body));
      return found == portals_.end() ? WireStatement{} : found->second;
    }
    case 'C': {  // Close: 'S' or 'P', name
      const bool statement = body.starts_with('S');
      body.remove_prefix(body.empty() ? 0 : 1);
      const std::string name{take_text(body)};
      (statement ? prepared_ : portals_).erase(name);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace pawl::testing
