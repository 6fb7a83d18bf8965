#include "handlers/sql_handler.hpp"

#include <fmt/format.h>

#include <atomic>

namespace pawl::handlers {

SqlHandler::SqlHandler(const std::string& label, const std::vector<SqlStatement>& statements) {
  // Statement names are per session; two handlers may carry the same label.
  static std::atomic<unsigned> next_number{0};
  for (std::size_t i = 0; i < statements.size(); ++i) {
    auto text = message::SqlText::parse(statements[i].text);
    postgres::Statement statement{fmt::format("pawl_sql_{}", next_number++), text.sql()};
    entries_.push_back({fmt::format("handler {}, statement {}", label, i + 1), std::move(text),
                        std::move(statement), statements[i].expect_rows});
  }
}

Response SqlHandler::apply(postgres::Frame& frame, const Message& message,
                           message::JsonView& json) const {
  for (const auto& entry : entries_) {
    postgres::Parameters parameters;
    for (const auto& parameter : entry.text.parameters()) {
      parameters.add_optional_text(parameter.render_parameter(message, json));
    }
    frame.defer(entry.statement, std::move(parameters), entry.expect_rows, entry.label);
  }
  return std::nullopt;
}

std::vector<DescribedStatement> SqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_) {
    described.push_back({entry.label, entry.statement.text, entry.text.parameters().size()});
  }
  return described;
}

}  // namespace pawl::handlers
