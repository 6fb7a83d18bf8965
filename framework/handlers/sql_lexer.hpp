#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl::handlers {

enum class SqlTokenKind {
  kWhiteSpace,
  kComment,           ///< -- to the line's end, or /* */, nested
  kWord,              ///< a keyword or an unquoted name
  kQuotedIdentifier,  ///< "..."
  kString,            ///< '...', E'...', with its prefix and continuations, or $tag$...$tag$
  kNumber,
  kParameter,  ///< $1
  kSemicolon,
  kOther,  ///< one character: operators, brackets, braces
};

struct SqlToken {
  SqlTokenKind kind = SqlTokenKind::kOther;
  std::size_t end = 0;  ///< position behind the token
  bool closed = true;   ///< false: a quote or comment that the text's end cuts off
};

/// The token that begins at text[begin] (begin < text.size()), by the lexical rules of PostgreSQL
/// (manual, chapter "Lexical Structure") with standard_conforming_strings on, which is the default
/// since 9.1. Only as fine as finding statements, names and quoted parts needs.
[[nodiscard]] SqlToken next_sql_token(std::string_view text, std::size_t begin);

/// A word as PostgreSQL compares keywords: ASCII letters in capitals.
[[nodiscard]] std::string sql_keyword(std::string_view word);

/// Whether c may stand within an unquoted name: characters that must not touch a parameter.
[[nodiscard]] bool is_sql_word_character(char c);

}  // namespace pawl::handlers
