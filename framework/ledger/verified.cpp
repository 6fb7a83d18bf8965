#include "ledger/verified.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "ledger/rows.hpp"
#include "postgres/session_state.hpp"

namespace pawl::ledger {
namespace {

std::string replaced(std::string text, std::string_view place, const std::string& by) {
  return text.replace(text.find(place), place.size(), by);
}

/// The highest N of $N.
int parameters_of(std::string_view text) {
  int highest = 0;
  for (auto at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    int number = 0;
    std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    highest = std::max(highest, number);
  }
  return highest;
}

}  // namespace

VerifiedValue verified_scope(int number, int name, const std::string& schema) {
  // Not a foreign key: the messages of a scope would all share the lock of its row.
  return {in_schema(fmt::format("coalesce((SELECT s.scope_id FROM pawl.idempotency_scopes s"
                                " WHERE s.scope_id = ${0}::integer AND s.name = ${1}),"
                                " pawl.reject_scope(${0}::integer, ${1}))",
                                number, name),
                    schema),
          // Names the other parameter as well: PostgreSQL must infer a type for each.
          fmt::format("CASE WHEN ${1}::text IS NOT NULL THEN ${0}::integer END", number, name)};
}

postgres::Statement with_scope(std::string name, std::string_view text, int number, int scope_name,
                               const std::string& schema) {
  const auto scope = verified_scope(number, scope_name, schema);
  const auto form = [&](const std::string& value) {
    return postgres::Statement{name, replaced(in_schema(text, schema), "{scope}", value)};
  };
  auto statement = form(scope.compared);
  // The same name: a session prepares only one of the two.
  statement.direct = std::make_shared<const postgres::Statement>(form(scope.direct));
  return statement;
}

postgres::Statement verifying(std::string name, std::string_view text, std::string_view place,
                              const VerifiedValue& value, const std::string& schema) {
  const auto parameters = std::max(parameters_of(text), parameters_of(value.compared));
  const auto form = [&](const std::string& checked) {
    const auto verified = fmt::format(
        "CASE WHEN ${0}::text IS NULL OR ${0}::text = {1} THEN {2} ELSE {3} END", parameters + 1,
        postgres::session_state(), checked, in_schema("pawl.reject_session()", schema));
    postgres::Statement statement{name, replaced(in_schema(text, schema), place, verified)};
    statement.verifies_session = true;
    return statement;
  };
  auto statement = form(value.compared);
  statement.direct = std::make_shared<const postgres::Statement>(form(value.direct));
  statement.direct_unverified = std::make_shared<const postgres::Statement>(postgres::Statement{
      name + "_unverified", replaced(in_schema(text, schema), place, value.direct)});
  return statement;
}

}  // namespace pawl::ledger
