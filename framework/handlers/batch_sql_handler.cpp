#include "handlers/batch_sql_handler.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "handlers/response_sql.hpp"
#include "handlers/sql_text.hpp"

namespace pawl::handlers {

BatchSqlHandler::BatchSqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                                 std::size_t max_response, const std::string& schema) {
  for (const auto& [label, from, responds] : written_statements(place, options)) {
    auto text = SqlText::parse_batch(from.text);
    Entry entry{
        label, postgres::application_statement(next_sql_name(), text.sql()), {}, from.where, {}};
    for (auto& value : std::move(text).parameters())
      entry.columns.push_back(column_of(std::move(value)));
    if (responds) {
      entry.response = entry.statement.text;
      entry.statement.text = batch_response_sql(
          entry.response, {label, max_response, std::nullopt, schema}, entry.columns.size());
      entry.statement.rule = kBatchResponseColumns;
      stores_responses_ = true;
    }
    entries_.push_back(std::move(entry));
  }
}

std::size_t BatchSqlHandler::column_of(message::Template value) {
  const auto known = std::find_if(values_.begin(), values_.end(), [&value](const auto& other) {
    return other.text() == value.text();
  });
  const auto column = static_cast<std::size_t>(known - values_.begin());
  if (known == values_.end())
    values_.push_back(std::move(value));
  return column;
}

Response BatchSqlHandler::apply(postgres::Frame& frame, const Message& message,
                                message::JsonView& json) const {
  BatchColumns columns;
  collect(message, json, columns);
  const std::array<std::uint32_t, 1> places{0};
  apply_batch(frame, {{&message, 1}, columns, places});
  return std::nullopt;
}

void BatchSqlHandler::collect(const Message& message, message::JsonView& json,
                              BatchColumns& columns) const {
  if (columns.size() < values_.size())
    columns.resize(values_.size());
  std::string scratch;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (const auto text = values_[i].render_parameter(message, json, scratch)) {
      columns[i].add_text(*text);
    } else {
      columns[i].add_null();
    }
  }
}

std::vector<Response> BatchSqlHandler::apply_batch(postgres::Frame& frame,
                                                   const BatchMessages& batch) const {
  for (const auto& entry : entries_) {
    postgres::Parameters parameters;
    for (const auto column : entry.columns)
      parameters.add_text(batch.columns[column].array_of(batch.places));
    if (!entry.response.empty() && batch.claim == nullptr) {
      parameters.add_null();
      parameters.add_null();
    } else if (!entry.response.empty()) {
      parameters.add_integer(batch.claim->scope);
      parameters.add_text(batch.claim->keys);
    }
    frame.defer(entry.statement, std::move(parameters), std::nullopt, entry.label);
  }
  return {};
}

std::vector<DescribedStatement> BatchSqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_) {
    const auto own = entry.response.empty() ? 0U : 2U;
    described.push_back({entry.label + " (for batches)", entry.statement.text,
                         entry.columns.size() + own, entry.where, entry.response,
                         entry.columns.size(), 2});
  }
  return described;
}

}  // namespace pawl::handlers
