#include "postgres/function_calls.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace pawl::postgres {
namespace {

/// What may stand before a parenthesis without being a call, and PostgreSQL's own functions that
/// handlers use most; sorted.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "abs",
    "all",
    "and",
    "any",
    "array",
    "array_agg",
    "as",
    "avg",
    "between",
    "btrim",
    "by",
    "case",
    "cast",
    "ceil",
    "clock_timestamp",
    "coalesce",
    "concat",
    "concat_ws",
    "conflict",
    "convert_from",
    "convert_to",
    "count",
    "date_trunc",
    "decode",
    "do",
    "else",
    "encode",
    "except",
    "exists",
    "extract",
    "filter",
    "floor",
    "format",
    "from",
    "gen_random_uuid",
    "generate_series",
    "greatest",
    "group",
    "having",
    "ilike",
    "in",
    "intersect",
    "is",
    "jsonb_agg",
    "jsonb_array_elements",
    "jsonb_array_length",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_set",
    "jsonb_strip_nulls",
    "jsonb_to_recordset",
    "jsonb_typeof",
    "lateral",
    "least",
    "left",
    "length",
    "like",
    "limit",
    "lower",
    "ltrim",
    "materialized",
    "max",
    "md5",
    "min",
    "not",
    "now",
    "nullif",
    "octet_length",
    "offset",
    "on",
    "or",
    "over",
    "replace",
    "returning",
    "right",
    "round",
    "row",
    "row_number",
    "rtrim",
    "select",
    "set",
    "some",
    "split_part",
    "string_agg",
    "substring",
    "sum",
    "then",
    "timestamptz",
    "to_char",
    "to_date",
    "to_jsonb",
    "to_timestamp",
    "trim",
    "trunc",
    "union",
    "unnest",
    "update",
    "upper",
    "using",
    "values",
    "when",
    "where",
    "with",
});
static_assert(std::ranges::is_sorted(kHarmless));

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
         c == '"' || static_cast<unsigned char>(c) >= 0x80;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

/// The name that ends right before `end`, blanks between them left out; where it begins in `begin`.
std::string_view name_before(std::string_view sql, std::size_t end, std::size_t& begin) {
  while (end > 0 && std::isspace(static_cast<unsigned char>(sql[end - 1])) != 0)
    --end;
  begin = end;
  while (begin > 0 && is_of_name(sql[begin - 1]))
    --begin;
  return sql.substr(begin, end - begin);
}

/// The list of columns of an INSERT, or the length of a type in a cast.
bool is_no_call(std::string_view sql, std::size_t begin) {
  if (begin >= 2 && sql.substr(begin - 2, 2) == "::")
    return true;
  std::size_t at = 0;
  return lower(name_before(sql, begin, at)) == "into";
}

}  // namespace

bool may_call_functions(std::string_view sql) {
  for (auto at = sql.find('('); at != std::string_view::npos; at = sql.find('(', at + 1)) {
    std::size_t begin = 0;
    const auto name = lower(name_before(sql, at, begin));
    // What pawl.publish does is known.
    if (name.empty() || name.ends_with(".publish") || is_no_call(sql, begin))
      continue;
    if (!std::ranges::binary_search(kHarmless, std::string_view(name)))
      return true;
  }
  return false;
}

}  // namespace pawl::postgres
