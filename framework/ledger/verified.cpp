#include "ledger/verified.hpp"

#include <fmt/format.h>

#include <utility>

#include "ledger/rows.hpp"
#include "postgres/session_state.hpp"

namespace pawl::ledger {
namespace {

std::string replaced(std::string text, std::string_view place, const std::string& by) {
  return text.replace(text.find(place), place.size(), by);
}

}  // namespace

std::string verified_scope(int number, int name, const std::string& schema) {
  // Not a foreign key: the messages of a scope would all share the lock of its row.
  return in_schema(fmt::format("coalesce((SELECT s.scope_id FROM pawl.idempotency_scopes s"
                               " WHERE s.scope_id = ${0}::integer AND s.name = ${1}),"
                               " pawl.refuse_scope(${0}::integer, ${1}))",
                               number, name),
                   schema);
}

std::string with_scope(std::string_view text, const std::string& expression,
                       const std::string& schema) {
  return replaced(in_schema(text, schema), "{scope}", expression);
}

postgres::Statement verifying(std::string name, std::string_view text, std::string_view place,
                              const std::string& value, int parameters, const std::string& schema) {
  const auto verified = fmt::format(
      "CASE WHEN ${0}::text IS NULL OR ${0}::text = {1} THEN {2} ELSE {3} END", parameters + 1,
      postgres::kSessionState, value, in_schema("pawl.refuse_session()", schema));
  postgres::Statement statement{std::move(name),
                                replaced(in_schema(text, schema), place, verified)};
  statement.verifies_session = true;
  return statement;
}

}  // namespace pawl::ledger
