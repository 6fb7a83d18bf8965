#include "handlers/counted_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "handlers/sql_shape.hpp"

namespace pawl::handlers {

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
      " {}.reject_rows(count(*), {}) END FROM pawl_rows",
      sql, changes && !shape.returns ? "RETURNING 1" : "", rows, schema, rows);
}

}  // namespace pawl::handlers
