#include "testing/postgres_wire.hpp"

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

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

/// Where what begins at `at` ends, when it is a comment or something in quotes; else `at`.
std::size_t skip_quoted(std::string_view sql, std::size_t at) {
  const auto behind = [&](std::string_view closing, std::size_t from) {
    const auto found = sql.find(closing, from);
    return found == std::string_view::npos ? sql.size() : found + closing.size();
  };
  const auto rest = sql.substr(at);
  if (rest.starts_with("--")) {
    return behind("\n", at);
  }
  if (rest.starts_with("/*")) {
    std::size_t depth = 1;
    std::size_t i = at + 2;
    for (; i < sql.size() && depth > 0; ++i) {
      const auto two = sql.substr(i, 2);
      if (two == "/*" || two == "*/") {
        depth = two == "/*" ? depth + 1 : depth - 1;
        ++i;
      }
    }
    return i;
  }
  if (rest.starts_with('\'') || rest.starts_with('"')) {
    // A doubled quote ends one literal and begins the next: the same for us. E'' has escapes.
    const bool escapes = rest.front() == '\'' && at > 0 &&
                         (sql[at - 1] == 'E' || sql[at - 1] == 'e') &&
                         (at == 1 || !is_word(sql[at - 2]));
    for (std::size_t i = at + 1; i < sql.size(); ++i) {
      if (escapes && sql[i] == '\\') {
        ++i;
      } else if (sql[i] == rest.front()) {
        return i + 1;
      }
    }
    return sql.size();
  }
  if (rest.starts_with('$') && (at == 0 || !is_word(sql[at - 1]))) {
    std::size_t end = at + 1;
    while (end < sql.size() && is_word(sql[end])) {
      ++end;
    }
    const bool parameter =
        end > at + 1 && std::isdigit(static_cast<unsigned char>(sql[at + 1])) != 0;
    if (end < sql.size() && sql[end] == '$' && !parameter) {
      return behind(sql.substr(at, end + 1 - at), end + 1);
    }
  }
  return at;
}

std::string lower_word(std::string_view sql, std::size_t at) {
  std::string word;
  while (at < sql.size() && is_word(sql[at])) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(sql[at++])));
  }
  return word;
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
  bool first = true;  // the next word is a statement's first
  for (std::size_t at = 0; at < sql.size();) {
    if (const auto end = skip_quoted(sql, at); end != at) {
      at = end;
    } else if (sql[at] == ';') {
      first = true;
      ++at;
    } else if (is_word(sql[at])) {
      const std::string word = lower_word(sql, at);
      if (first && (word == "commit" || word == "end")) {
        return true;
      }
      first = false;
      at += word.size();
    } else {
      ++at;
    }
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
