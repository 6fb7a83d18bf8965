#include "handlers/sql_handler.hpp"

#include <algorithm>

namespace pawl::handlers {

SqlHandler::SqlHandler(const HandlerPlace& place, const std::vector<SqlStatement>& statements,
                       const std::string& schema) {
  for (std::size_t i = 0; i < statements.size(); ++i) {
    auto text = SqlText::parse(statements[i].text);
    HandlerStatement statement(text.sql(), statements[i].expect_rows, schema);
    entries_.push_back(
        {sql_label(place, i), std::move(text), std::move(statement), statements[i].where});
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
    described.push_back({entry.label, entry.statement.counted_by_reader().text,
                         entry.text.parameters().size(), entry.where});
  }
  return described;
}

}  // namespace pawl::handlers
