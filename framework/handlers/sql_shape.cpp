#include "handlers/sql_shape.hpp"

#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {

// RETURNING is reserved: where it is no clause it stands in brackets (a function of SQL/JSON has
// one of its own), behind AS or behind a dot. WITH also comes in types ("timestamp with time
// zone"): then the statement only goes without company.
//
// The queries of a WITH at the beginning are in brackets: `name AS (...)`, separated by commas, so
// the first word or bracket behind a closed one, other than those of SEARCH and CYCLE, begins what
// they are for.
SqlShape shape_of(std::string_view sql) {
  using Kind = SqlTokenKind;
  SqlShape shape;
  std::string before;  // the token before, in capitals
  int depth = 0;
  bool main_found = false;
  bool closed_query = false;  // of the WITH at the beginning
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = next_sql_token(sql, at);
    const auto begin = at;
    const auto text = sql.substr(at, token.end - at);
    at = token.end;
    if (token.kind == Kind::kWhiteSpace || token.kind == Kind::kComment)
      continue;
    const auto previous = before;
    before = sql_keyword(text);
    const bool is_word = token.kind == Kind::kWord;
    const bool begins = shape.first.empty() && !main_found;
    if (is_word && shape.first.empty())
      shape.first = before;
    if (begins && (before == "(" || (is_word && before != "WITH"))) {
      main_found = true;
      shape.main = begin;
      shape.main_word = is_word ? before : "";
    }
    if (!main_found && depth == 0) {
      if (before == ",")
        closed_query = false;
      const bool main_word = before == "SELECT" || before == "INSERT" || before == "UPDATE" ||
                             before == "DELETE" || before == "MERGE" || before == "VALUES" ||
                             before == "TABLE";
      if (closed_query && ((is_word && main_word) || (before == "(" && previous == ")"))) {
        main_found = true;
        shape.main = begin;
        shape.main_word = is_word ? before : "";
      }
    }
    if (before == "(") {
      ++depth;
    } else if (before == ")") {
      --depth;
      // Not that of a list of columns: `name (a, b) AS (`.
      closed_query = closed_query || depth == 0;
    }
    if (!is_word)
      continue;
    if (before == "AS" && depth == 0)
      closed_query = false;
    const bool names = previous == "AS" || previous == ".";
    shape.returns = shape.returns || (before == "RETURNING" && depth == 0 && !names);
    shape.has_with = shape.has_with || before == "WITH";
  }
  return shape;
}

}  // namespace pawl::handlers
