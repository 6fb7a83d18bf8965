#include "handlers/response_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "handlers/sql_shape.hpp"

namespace pawl::handlers {
namespace {

/// Bytes of any value: those of bytea as they are, all else as PostgreSQL writes it. By its text,
/// since a CASE must fit both.
std::string bytes_of(std::string_view value) {
  return fmt::format(
      "CASE WHEN pg_typeof({0}) = 'bytea'::regtype THEN {0}::text::bytea"
      " ELSE convert_to({0}::text, 'UTF8') END",
      value);
}

/// The statement as the query pawl_response of a WITH: the last one of its own, for what changes
/// rows must stand at the top (PostgreSQL manual, 7.8.4). Lines of their own: it may hold comments.
std::string as_query(std::string_view sql) {
  const auto shape = shape_of(sql);
  if (shape.first == "WITH" && shape.main > 0) {
    return fmt::format("{}\n, pawl_response AS MATERIALIZED (\n{}\n)", sql.substr(0, shape.main),
                       sql.substr(shape.main));
  }
  return fmt::format("WITH pawl_response AS MATERIALIZED (\n{}\n)", sql);
}

}  // namespace

std::optional<std::string> response_problem(std::string_view sql) {
  static constexpr std::array<std::string_view, 4> kQueries{"SELECT", "VALUES", "TABLE", ""};
  static constexpr std::array<std::string_view, 4> kChanges{"INSERT", "UPDATE", "DELETE", "MERGE"};
  const auto shape = shape_of(sql);
  if (std::ranges::find(kQueries, shape.main_word) != kQueries.end())
    return std::nullopt;
  if (std::ranges::find(kChanges, shape.main_word) == kChanges.end())
    return fmt::format("{} returns no value that can be the response", shape.main_word);
  if (!shape.returns)
    return fmt::format("{} without RETURNING returns no value that can be the response",
                       shape.main_word);
  return std::nullopt;
}

std::string response_sql(std::string_view sql, const ResponseRules& rules) {
  return fmt::format(
      "{} SELECT {}.store_response((SELECT count(*) FROM pawl_response), {}, {}, {})"
      " FROM (SELECT (SELECT * FROM pawl_response LIMIT 1) AS value) one",
      as_query(sql), rules.schema, rules.expect_rows ? std::to_string(*rules.expect_rows) : "NULL",
      bytes_of("one.value"), rules.most_bytes);
}

std::string batch_response_sql(std::string_view sql, const ResponseRules& rules,
                               std::size_t parameters) {
  // The second query has two columns, so the first one must have as many.
  return fmt::format(
      "{}, pawl_responses (place, response) AS MATERIALIZED ("
      "SELECT * FROM pawl_response UNION ALL SELECT NULL, NULL WHERE false)"
      " SELECT {}.store_responses({}, ${}::integer, ${}::text[],"
      " array_agg(r.place::bigint), array_agg({})) FROM pawl_responses r",
      as_query(sql), rules.schema, rules.most_bytes, parameters + 1, parameters + 2,
      bytes_of("r.response"));
}

}  // namespace pawl::handlers
