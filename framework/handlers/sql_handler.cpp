#include "handlers/sql_handler.hpp"

#include <algorithm>

#include "handlers/counted_sql.hpp"
#include "handlers/sql_statement_names.hpp"

namespace pawl::handlers {

SqlHandler::SqlHandler(const std::string& label, const std::vector<SqlStatement>& statements,
                       const std::string& schema) {
  for (std::size_t i = 0; i < statements.size(); ++i) {
    auto text = message::SqlText::parse(statements[i].text);
    postgres::Statement statement{next_sql_name(), text.sql()};
    const auto rows = statements[i].expect_rows;
    std::optional<postgres::Statement> counted;
    if (rows) {
      if (auto sql = counted_sql(text.sql(), *rows, schema))
        counted = postgres::Statement{next_sql_name(), *std::move(sql)};
    }
    entries_.push_back(
        {sql_label(label, i), std::move(text), std::move(statement), rows, std::move(counted)});
  }
}

Response SqlHandler::apply(postgres::Frame& frame, const Message& message,
                           message::JsonView& json) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& entry = entries_[i];
    postgres::Parameters parameters;
    fill(i, parameters, message, json);
    frame.defer(entry.statement, std::move(parameters), entry.expect_rows, entry.label);
  }
  return std::nullopt;
}

void SqlHandler::fill(std::size_t index, postgres::Parameters& parameters, const Message& message,
                      message::JsonView& json) const {
  for (const auto& parameter : entries_[index].text.parameters())
    parameters.add_optional_text(parameter.render_parameter(message, json));
}

const FixedStatements* SqlHandler::fixed_statements() const {
  const bool waits = std::ranges::any_of(
      entries_, [](const Entry& entry) { return entry.expect_rows && !entry.counted; });
  return waits ? nullptr : this;
}

std::vector<DescribedStatement> SqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_) {
    described.push_back({entry.label, entry.statement.text, entry.text.parameters().size()});
  }
  return described;
}

}  // namespace pawl::handlers
