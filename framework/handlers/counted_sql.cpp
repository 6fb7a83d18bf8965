#include "handlers/counted_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "handlers/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

struct Shape {
  std::string first;  ///< its first word, in capitals
  bool returns = false;
  bool has_with = false;
};

// RETURNING is reserved: where it is no clause it stands in brackets (a function of SQL/JSON has
// one of its own), behind AS or behind a dot. WITH also comes in types ("timestamp with time
// zone"): then the statement only goes without company.
Shape shape_of(std::string_view sql) {
  using Kind = SqlTokenKind;
  Shape shape;
  std::string before;  // the token before, in capitals
  int depth = 0;
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = next_sql_token(sql, at);
    const auto text = sql.substr(at, token.end - at);
    at = token.end;
    if (token.kind == Kind::kWhiteSpace || token.kind == Kind::kComment)
      continue;
    const bool names = before == "AS" || before == ".";
    before = sql_keyword(text);
    if (before == "(") {
      ++depth;
    } else if (before == ")") {
      --depth;
    }
    if (token.kind != Kind::kWord)
      continue;
    if (shape.first.empty())
      shape.first = before;
    shape.returns = shape.returns || (before == "RETURNING" && depth == 0 && !names);
    shape.has_with = shape.has_with || before == "WITH";
  }
  return shape;
}

}  // namespace

std::optional<std::string> counted_sql(std::string_view sql, std::uint64_t rows,
                                       std::string_view schema) {
  static constexpr std::array<std::string_view, 3> kChanges{"INSERT", "UPDATE", "DELETE"};
  const auto shape = shape_of(sql);
  const bool changes = std::ranges::find(kChanges, shape.first) != kChanges.end();
  if (shape.has_with || (!changes && shape.first != "SELECT"))
    return std::nullopt;
  // Lines of their own: the statement may end in a comment.
  return fmt::format(
      "WITH pawl_rows AS MATERIALIZED (\n{}\n{}) SELECT CASE WHEN count(*) <> {} THEN"
      " {}.refuse_rows(count(*), {}) END FROM pawl_rows",
      sql, changes && !shape.returns ? "RETURNING 1" : "", rows, schema, rows);
}

}  // namespace pawl::handlers
