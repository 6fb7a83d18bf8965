#include "handlers/counted_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "message/sql_lexer.hpp"

namespace pawl::handlers {
namespace {

struct Shape {
  std::string first;  ///< its first word, in capitals
  bool returns = false;
  bool has_with = false;
};

// RETURNING and WITH are reserved or stand where no name can, so that a bare word is the clause; a
// column named so has quotes. WITH also comes in types ("timestamp with time zone"): then the
// statement only goes without company.
Shape shape_of(std::string_view sql) {
  Shape shape;
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = message::next_sql_token(sql, at);
    if (token.kind == message::SqlTokenKind::kWord) {
      const auto word = message::sql_keyword(sql.substr(at, token.end - at));
      if (shape.first.empty())
        shape.first = word;
      shape.returns = shape.returns || word == "RETURNING";
      shape.has_with = shape.has_with || word == "WITH";
    }
    at = token.end;
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
