#include "handlers/bytes_binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "handlers/handler.hpp"
#include "handlers/router.hpp"
#include "pawl/errors.hpp"
#include "postgres/describe.hpp"
#include "postgres/error.hpp"
#include "postgres/session.hpp"
#include "postgres/transaction_statements.hpp"

namespace pawl::handlers {
namespace {

using message::Source;
using message::SourceKind;
using postgres::ParameterType;

bool any_source(const message::Template& value, bool (*is)(const Source&)) {
  return std::ranges::any_of(value.placeholders(), [&](const auto* placeholder) {
    return std::ranges::any_of(placeholder->sources(), is);
  });
}

/// The digits of a hash have one meaning.
bool is_json(const Source& source) {
  return source.kind == SourceKind::kJson && !source.sha256;
}

bool is_of_record(const Source& source) {
  return (source.kind == SourceKind::kHeader || source.kind == SourceKind::kKey ||
          source.kind == SourceKind::kValue) &&
         !source.sha256;
}

/// With what stands around each element.
std::string meanings(const std::string& text, bool is_array) {
  if (!is_array) {
    return fmt::format(
        "convert_to({0}::text, 'UTF8'), decode({0}::text, 'base64') or decode({0}::text, 'hex')",
        text);
  }
  return fmt::format(
      "{}::text[], and convert_to(x, 'UTF8'), decode(x, 'base64') or decode(x, 'hex') for each "
      "element x of unnest",
      text);
}

}  // namespace

bool may_be_bytes(const message::Template& value) {
  return any_source(value, is_of_record) && !any_source(value, is_json);
}

BoundAs binding_of(const message::Template& value, ParameterType type) {
  if (type == ParameterType::kOther)
    return BoundAs::kText;
  if (type == ParameterType::kJson || type == ParameterType::kJsonArray)
    return may_be_bytes(value) ? BoundAs::kJson : BoundAs::kText;
  if (any_source(value, is_json))
    return BoundAs::kRefused;
  if (!any_source(value, is_of_record))
    return BoundAs::kText;
  return type == ParameterType::kBytes ? BoundAs::kBytes : BoundAs::kByteArray;
}

std::optional<std::string> binding_problem(const DescribedStatement& statement,
                                           const postgres::ParameterTypes& types) {
  const auto bound = std::min(statement.values.size(), types.size());
  for (std::size_t i = 0; i < bound; ++i) {
    const auto& value = *statement.values[i];
    if (binding_of(value, types[i]) != BoundAs::kRefused)
      continue;
    const bool is_array = types[i] == ParameterType::kByteArray;
    return fmt::format(
        "{} is text of the message's JSON, but its parameter is {}. PostgreSQL would read the text "
        "in bytea's escape format and store other bytes. Use one of: {}",
        value.text(), is_array ? "bytea[]" : "bytea", meanings(value.text(), is_array));
  }
  return std::nullopt;
}

void throw_unbindable(const DescribedStatement& statement, const std::string& name,
                      const postgres::ParameterTypes& types) {
  // As the server says it of types that do not fit: any message would fail.
  throw postgres::Error("42804", binding_problem(statement, types).value_or("")).of_statement(name);
}

namespace {

/// For the transaction.
const postgres::Statement kNoWait{"", "SELECT set_config('lock_timeout', '1', true)"};

}  // namespace

void require_bindable(postgres::Session& session, const Router& router) {
  // A table that somebody changes right now is not waited for: parameters are looked at once more
  // before they are bound.
  if (postgres::some_table_is_locked(session))
    return;
  for (const auto& binding : router.bindings()) {
    for (const auto& statement : binding->handler->statements()) {
      const bool has_json = std::ranges::any_of(
          statement.values, [](const auto* value) { return any_source(*value, is_json); });
      if (!has_json)
        continue;
      std::optional<std::string> problem;
      try {
        session.exec(postgres::begin_statement(postgres::Isolation::kReadCommitted));
        session.exec(kNoWait);
        problem = binding_problem(statement, postgres::describe_parameters(
                                                 session, postgres::Statement{"", statement.sql}));
      } catch (const postgres::Error& error) {
        // What is wrong with the statement itself is reported when it runs, and a table that is
        // locked meanwhile is no error.
        using postgres::FailureClass;
        const auto failure = error.failure();
        if (failure != FailureClass::kProgram && failure != FailureClass::kMessage &&
            failure != FailureClass::kContention)
          throw;
      }
      postgres::roll_back(session);
      if (problem)
        throw FatalError(fmt::format("{}: {}", statement.place(), *problem));
    }
  }
}

}  // namespace pawl::handlers
