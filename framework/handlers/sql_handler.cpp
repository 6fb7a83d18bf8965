#include "handlers/sql_handler.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "handlers/bytes_binding.hpp"
#include "handlers/response_sql.hpp"

namespace pawl::handlers {

namespace {

const postgres::ParameterTypes kNoTypes;

}  // namespace

SqlHandler::SqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                       std::size_t max_response, const std::string& schema) {
  for (const auto& [name, label, from, responds] : written_statements(place, options)) {
    auto text = SqlText::parse(from.text);
    // A response counts its rows by itself, so it never makes a message go alone.
    auto statement =
        responds
            ? HandlerStatement(response_sql(text.sql(), {max_response, from.expect_rows, schema}),
                               kResponseColumns)
            : HandlerStatement(text.sql(), from.expect_rows, schema);
    entries_.push_back({name, label, std::move(text), std::move(statement), from.where, responds});
  }
}

Response SqlHandler::apply(postgres::Frame& frame, const Message& message,
                           message::JsonView& json) const {
  for (const auto& entry : entries_) {
    const auto& statement = entry.statement.counted_by_reader();
    const auto& types =
        entry.text.parameters().empty() ? kNoTypes : frame.types_of(statement, entry.name);
    postgres::Parameters parameters;
    fill(entry, types, parameters, message, json);
    frame.defer(statement, std::move(parameters), entry.statement.expect_rows(), entry.name);
  }
  return std::nullopt;
}

/// As many types as parameters, or more.
void SqlHandler::fill(const Entry& entry, const postgres::ParameterTypes& types,
                      postgres::Parameters& parameters, const Message& message,
                      message::JsonView& json) {
  const auto& values = entry.text.parameters();
  std::string scratch;
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (binding_of(values[i], types[i])) {
      case BoundAs::kText:
      case BoundAs::kByteArray:  // an array that a message brings is PostgreSQL's text of one
        parameters.add_optional_text(values[i].render_parameter(message, json));
        break;
      case BoundAs::kJson:
        if (const auto text = values[i].render_parameter(message, json, scratch))
          parameters.add_text(message::without_byte_order_mark(*text));
        else
          parameters.add_null();
        break;
      case BoundAs::kBytes:
        parameters.add_optional_bytes(values[i].render_bytes(message, json, scratch));
        break;
      case BoundAs::kRefused:
        throw_unbindable(described(entry), entry.name, types);
    }
  }
}

/// As they are, whatever a server takes them for.
void SqlHandler::show(const Entry& entry, postgres::Parameters& parameters, const Message& message,
                      message::JsonView& json) {
  std::string scratch;
  for (const auto& value : entry.text.parameters())
    parameters.add_optional_bytes(value.render_bytes(message, json, scratch));
}

bool SqlHandler::plan(StatementPlan& plan, const Message& message, message::JsonView& json) const {
  for (const auto& entry : entries_) {
    const auto& statement = *entry.statement.counted_by_server();
    if (plan.is_shown_only()) {
      show(entry, plan.add(statement), message, json);
      continue;
    }
    const auto* types = entry.text.parameters().empty() ? &kNoTypes : plan.known_types(statement);
    if (types == nullptr)
      return false;
    fill(entry, *types, plan.add(statement), message, json);
  }
  return true;
}

const StatementPlanner* SqlHandler::planner() const {
  const bool all = std::ranges::all_of(
      entries_, [](const Entry& entry) { return entry.statement.counted_by_server() != nullptr; });
  return all ? this : nullptr;
}

std::vector<DescribedStatement> SqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_)
    described.push_back(SqlHandler::described(entry));
  return described;
}

DescribedStatement SqlHandler::described(const Entry& entry) {
  const auto& values = entry.text.parameters();
  DescribedStatement described{entry.label,
                               entry.statement.counted_by_reader().text,
                               values.size(),
                               entry.where,
                               entry.responds ? entry.text.sql() : "",
                               values.size(),
                               1};
  for (const auto& value : values)
    described.values.push_back(&value);
  return described;
}

}  // namespace pawl::handlers
