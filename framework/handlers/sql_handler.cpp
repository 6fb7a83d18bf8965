#include "handlers/sql_handler.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "handlers/response_sql.hpp"

namespace pawl::handlers {

SqlHandler::SqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                       std::size_t max_response, const std::string& schema) {
  for (const auto& [label, from, responds] : written_statements(place, options)) {
    auto text = SqlText::parse(from.text);
    // A response counts its rows by itself, so it never makes a message go alone.
    auto statement =
        responds ? HandlerStatement(
                       response_sql(text.sql(), {label, max_response, from.expect_rows, schema}),
                       kResponseColumns)
                 : HandlerStatement(text.sql(), from.expect_rows, schema);
    entries_.push_back({label, std::move(text), std::move(statement), from.where, responds});
  }
}

Response SqlHandler::apply(postgres::Frame& frame, const Message& message,
                           message::JsonView& json) const {
  for (const auto& entry : entries_) {
    postgres::Parameters parameters;
    fill(entry, parameters, message, json);
    frame.defer(entry.statement.counted_by_reader(), std::move(parameters),
                entry.statement.expect_rows(), entry.label);
  }
  return std::nullopt;
}

void SqlHandler::fill(const Entry& entry, postgres::Parameters& parameters, const Message& message,
                      message::JsonView& json) {
  for (const auto& parameter : entry.text.parameters())
    parameters.add_optional_text(parameter.render_parameter(message, json));
}

bool SqlHandler::plan(StatementPlan& plan, const Message& message, message::JsonView& json) const {
  for (const auto& entry : entries_)
    fill(entry, plan.add(*entry.statement.counted_by_server()), message, json);
  return true;
}

const StatementPlanner* SqlHandler::planner() const {
  const bool all = std::ranges::all_of(
      entries_, [](const Entry& entry) { return entry.statement.counted_by_server() != nullptr; });
  return all ? this : nullptr;
}

std::vector<DescribedStatement> SqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_) {
    described.push_back(
        {entry.label, entry.statement.counted_by_reader().text, entry.text.parameters().size(),
         entry.where, entry.responds ? entry.text.sql() : "", entry.text.parameters().size(), 1});
  }
  return described;
}

}  // namespace pawl::handlers
