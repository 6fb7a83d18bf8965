#include "handlers/written_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

struct Token {
  SqlTokenKind kind = SqlTokenKind::kOther;
  std::string_view text;
  std::string keyword;  ///< in capitals; empty: no word
};

/// Without white space and comments.
std::vector<Token> tokens_of(std::string_view sql) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = next_sql_token(sql, at);
    const auto text = sql.substr(at, token.end - at);
    if (token.kind != SqlTokenKind::kWhiteSpace && token.kind != SqlTokenKind::kComment)
      tokens.push_back(
          {token.kind, text, token.kind == SqlTokenKind::kWord ? sql_keyword(text) : ""});
    at = token.end;
  }
  return tokens;
}

bool is_identifier(const Token& token) {
  return token.kind == SqlTokenKind::kWord || token.kind == SqlTokenKind::kQuotedIdentifier;
}

class Targets {
 public:
  explicit Targets(std::string_view sql) : tokens_(tokens_of(sql)) {}

  std::vector<std::string> find() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const auto before = i == 0 ? "" : keyword(i - 1);
      const auto& word = keyword(i);
      if (word == "INTO" && (before == "INSERT" || before == "MERGE")) {
        take(i + 1);
      } else if (word == "FROM" && before == "DELETE") {
        take(i + 1);
      } else if (word == "UPDATE" && before != "FOR" && before != "KEY" && before != "DO" &&
                 before != "THEN") {
        take(i + 1);
      } else if (word == "COPY" && i == 0) {
        take(i + 1);
      } else if (word == "TRUNCATE" && i == 0) {
        take_list(i + 1);
      }
    }
    return std::move(names_);
  }

 private:
  [[nodiscard]] std::string keyword(std::size_t i) const {
    return i < tokens_.size() ? tokens_[i].keyword : "";
  }
  [[nodiscard]] bool is(std::size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].kind == SqlTokenKind::kOther && tokens_[i].text == text;
  }

  /// Returns the place behind the name.
  std::size_t take(std::size_t i) {
    if (keyword(i) == "ONLY")
      ++i;
    std::string name;
    while (i < tokens_.size() && is_identifier(tokens_[i])) {
      name += tokens_[i++].text;
      if (!is(i, "."))
        break;
      name += '.';
      ++i;
    }
    if (!name.empty() && std::ranges::find(names_, name) == names_.end())
      names_.push_back(std::move(name));
    return i;
  }

  void take_list(std::size_t i) {
    if (keyword(i) == "TABLE")
      ++i;
    while (true) {
      i = take(i);
      if (is(i, "*"))
        ++i;
      if (!is(i, ","))
        return;
      ++i;
    }
  }

  std::vector<Token> tokens_;
  std::vector<std::string> names_;
};

constexpr std::array<std::string_view, 4> kDblinkCalls{"dblink", "dblink_exec", "dblink_send_query",
                                                       "dblink_open"};

}  // namespace

std::vector<std::string> written_names(std::string_view sql) {
  return Targets(sql).find();
}

std::vector<std::string> dblink_calls(std::string_view sql) {
  const auto tokens = tokens_of(sql);
  std::vector<std::string> calls;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!is_identifier(tokens[i]) || tokens[i + 1].text != "(")
      continue;
    const auto& token = tokens[i];
    for (const auto call : kDblinkCalls) {
      const bool called = token.kind == SqlTokenKind::kWord
                              ? token.keyword == sql_keyword(call)
                              : token.text.substr(1, token.text.size() - 2) == call;
      if (called && std::ranges::find(calls, call) == calls.end())
        calls.emplace_back(call);
    }
  }
  return calls;
}

}  // namespace pawl::handlers
