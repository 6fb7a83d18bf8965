#include "handlers/sql_handler.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "handlers/response_sql.hpp"

namespace pawl::handlers {

SqlHandler::SqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                       std::size_t max_response, const std::string& schema) {
  const auto& response = options.response;
  for (std::size_t i = 0; i < options.sql.size(); ++i) {
    const auto& from = options.sql[i];
    if (!response.statement.empty() && from.name == response.statement) {
      add_response(sql_label(place, i), from, max_response, schema);
      continue;
    }
    auto text = SqlText::parse(from.text);
    HandlerStatement statement(text.sql(), from.expect_rows, schema);
    entries_.push_back({sql_label(place, i), std::move(text), std::move(statement), from.where});
  }
  if (!response.text.empty())
    add_response(response_label(place), {response.text, std::nullopt, response.where}, max_response,
                 schema);
}

/// It counts its rows by itself, so it never makes a message go alone.
void SqlHandler::add_response(std::string label, const SqlStatement& statement,
                              std::size_t max_response, const std::string& schema) {
  auto text = SqlText::parse(statement.text);
  HandlerStatement storing(
      response_sql(text.sql(), {label, max_response, statement.expect_rows, schema}),
      kResponseColumns);
  entries_.push_back(
      {std::move(label), std::move(text), std::move(storing), statement.where, true});
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
