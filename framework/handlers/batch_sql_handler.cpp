#include "handlers/batch_sql_handler.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "handlers/bytes_binding.hpp"
#include "handlers/response_sql.hpp"
#include "handlers/sql_text.hpp"

namespace pawl::handlers {

BatchSqlHandler::BatchSqlHandler(const HandlerPlace& place, const HandlerOptions& options,
                                 std::size_t max_response, const std::string& schema) {
  for (const auto& [name, label, from, responds] : written_statements(place, options)) {
    auto text = SqlText::parse_batch(from.text);
    Entry entry{name, label,      postgres::application_statement(next_sql_name(), text.sql()),
                {},   from.where, {}};
    for (auto& value : std::move(text).parameters())
      entry.columns.push_back(column_of(std::move(value)));
    if (responds) {
      entry.response = entry.statement.text;
      entry.statement.text = batch_response_sql(
          entry.response, {max_response, std::nullopt, schema}, entry.columns.size());
      entry.statement.rule = kBatchResponseColumns;
      stores_responses_ = true;
    }
    entries_.push_back(std::move(entry));
  }
}

std::size_t BatchSqlHandler::column_of(message::Template value) {
  const auto known = std::find_if(values_.begin(), values_.end(), [&value](const auto& other) {
    return other.rendered.text() == value.text();
  });
  const auto column = static_cast<std::size_t>(known - values_.begin());
  if (known == values_.end()) {
    const bool is_record = may_be_bytes(value);
    values_.push_back({std::move(value), is_record});
  }
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
    if (values_[i].is_record) {
      // Only what is missing shows now.
      (void)values_[i].rendered.render_bytes(message, json, scratch);
      columns[i].add_null();
      continue;
    }
    if (const auto text = values_[i].rendered.render_parameter(message, json, scratch)) {
      columns[i].add_text(*text);
    } else {
      columns[i].add_null();
    }
  }
}

std::vector<Response> BatchSqlHandler::apply_batch(postgres::Frame& frame,
                                                   const BatchMessages& batch) const {
  for (const auto& entry : entries_) {
    postgres::ParameterTypes types;
    if (!entry.columns.empty())
      types = frame.types_of(entry.statement, entry.name);
    postgres::Parameters parameters;
    for (std::size_t i = 0; i < entry.columns.size(); ++i)
      parameters.add_text(array_of(entry, types, i, batch));
    if (!entry.response.empty() && batch.claim == nullptr) {
      parameters.add_null();
      parameters.add_null();
    } else if (!entry.response.empty()) {
      parameters.add_integer(batch.claim->scope);
      parameters.add_text(batch.claim->keys);
    }
    frame.defer(entry.statement, std::move(parameters), std::nullopt, entry.name);
  }
  return {};
}

std::string BatchSqlHandler::array_of(const Entry& entry, const postgres::ParameterTypes& types,
                                      std::size_t parameter, const BatchMessages& batch) const {
  const auto column = entry.columns[parameter];
  const auto& value = values_[column];
  const auto binding = binding_of(value.rendered, types[parameter]);
  if (binding == BoundAs::kRefused)
    throw_unbindable(described(entry), entry.name, types);
  if (!value.is_record)
    return batch.columns[column].array_of(batch.places);
  postgres::ArrayElements elements;
  message::JsonReader reader;
  std::string scratch;
  for (const auto& message : batch.messages) {
    message::JsonView json(reader, message);
    const auto bytes = binding == BoundAs::kByteArray;
    const auto found = bytes ? value.rendered.render_bytes(message, json, scratch)
                             : value.rendered.render_parameter(message, json, scratch);
    if (!found) {
      elements.add_null();
    } else if (bytes) {
      elements.add_bytes(*found);
    } else if (binding == BoundAs::kJson) {
      elements.add_text(message::without_byte_order_mark(*found));
    } else {
      elements.add_text(*found);
    }
  }
  return elements.array();
}

std::vector<DescribedStatement> BatchSqlHandler::statements() const {
  std::vector<DescribedStatement> described;
  for (const auto& entry : entries_)
    described.push_back(BatchSqlHandler::described(entry));
  return described;
}

DescribedStatement BatchSqlHandler::described(const Entry& entry) const {
  const auto own = entry.response.empty() ? 0U : 2U;
  DescribedStatement described{entry.label + " (for batches)",
                               entry.statement.text,
                               entry.columns.size() + own,
                               entry.where,
                               entry.response,
                               entry.columns.size(),
                               2};
  for (const auto column : entry.columns)
    described.values.push_back(&values_[column].rendered);
  return described;
}

}  // namespace pawl::handlers
