#include "handlers/published_topics.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

constexpr std::size_t kLongestName = 249;

struct Token {
  SqlTokenKind kind = SqlTokenKind::kOther;
  std::string_view text;
};

/// Without white space and comments.
std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = next_sql_token(sql, at);
    if (token.kind != SqlTokenKind::kWhiteSpace && token.kind != SqlTokenKind::kComment)
      tokens.push_back({token.kind, sql.substr(at, token.end - at)});
    at = token.end;
  }
  return tokens;
}

bool is_name(const Token& token, std::string_view name) {
  if (token.kind == SqlTokenKind::kWord)
    return sql_keyword(token.text) == sql_keyword(name);
  return token.kind == SqlTokenKind::kQuotedIdentifier &&
         (token.text == name || token.text.substr(1, token.text.size() - 2) == name);
}

bool is(const Token& token, std::string_view text) {
  return token.kind == SqlTokenKind::kOther && token.text == text;
}

/// Of a plain '...'; others are rare, and mean what only PostgreSQL knows.
std::optional<std::string> value_of(const Token& literal) {
  if (literal.kind != SqlTokenKind::kString || !literal.text.starts_with('\'') ||
      literal.text.find('\n') != std::string_view::npos)
    return std::nullopt;
  std::string value;
  const auto inner = literal.text.substr(1, literal.text.size() - 2);
  for (std::size_t i = 0; i < inner.size(); ++i) {
    value += inner[i];
    if (inner[i] == '\'')
      ++i;
  }
  return value;
}

/// The argument's value, if it is a literal and nothing else: 'topic', or 'topic'::text.
std::optional<std::string> literal(std::span<const Token> argument) {
  const bool cast = argument.size() == 4 && is(argument[1], ":") && is(argument[2], ":") &&
                    is_name(argument[3], "text");
  return argument.size() == 1 || cast ? value_of(argument.front()) : std::nullopt;
}

/// Behind `topic =>`; nullopt: another argument's name, or none.
std::optional<std::span<const Token>> named_topic(std::span<const Token> argument) {
  if (argument.size() < 4 || !is_name(argument[0], "topic") ||
      !is(argument[2], argument[1].text == "=" ? ">" : "="))
    return std::nullopt;
  return is(argument[1], "=") || is(argument[1], ":") ? std::optional(argument.subspan(3))
                                                      : std::nullopt;
}

/// The arguments of a call, whose opening bracket is before `begin`.
std::vector<std::span<const Token>> arguments(std::span<const Token> tokens, std::size_t begin) {
  std::vector<std::span<const Token>> found;
  int depth = 0;
  for (auto at = begin; at < tokens.size(); ++at) {
    const auto& token = tokens[at];
    if (depth == 0 && (is(token, ",") || is(token, ")"))) {
      found.push_back(tokens.subspan(begin, at - begin));
      begin = at + 1;
      if (is(token, ")"))
        break;
    } else if (is(token, "(") || is(token, "[")) {
      ++depth;
    } else if (is(token, ")") || is(token, "]")) {
      --depth;
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> published_topics(std::string_view sql, std::string_view schema) {
  const auto tokens = tokens_of(sql);
  std::vector<std::string> topics;
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (!is_name(tokens[i], schema) || !is(tokens[i + 1], ".") ||
        !is_name(tokens[i + 2], "publish") || !is(tokens[i + 3], "("))
      continue;
    bool first = true;
    for (const auto& argument : arguments(tokens, i + 4)) {
      const auto named = named_topic(argument);
      const auto topic = named ? literal(*named) : first ? literal(argument) : std::nullopt;
      if (topic)
        topics.push_back(*topic);
      first = false;
    }
  }
  return topics;
}

bool is_topic_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace pawl::handlers
