#include "ledger/history_view.hpp"

#include <utility>

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kRead = R"sql(
  SELECT history_id, topic, partition,
         to_char(happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         action, from_offset, to_offset, concat_ws(': ', halt_code, reason), actor
    FROM pawl.offset_history
   WHERE consumer_id = $1::integer AND ($2 = '' OR topic = $2)
     AND ($3::integer IS NULL OR partition = $3::integer)
     AND ($4::bigint = 0 OR history_id < $4::bigint)
   ORDER BY history_id DESC
   LIMIT $5::bigint
)sql";

constexpr const char* kRecord = R"sql(
  INSERT INTO pawl.offset_history
         (consumer_id, topic, partition, action, from_offset, to_offset, reason)
  VALUES ($1::integer, $2, $3::integer, $5, $4::bigint, $4::bigint, $6)
)sql";

}  // namespace

std::vector<HistoryRow> read_history(postgres::Session& session, const std::string& schema,
                                     ConsumerId consumer, const std::string& topic,
                                     std::optional<std::int32_t> partition, std::int64_t before,
                                     std::int64_t limit) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(topic);
  if (partition) {
    parameters.add_integer(*partition);
  } else {
    parameters.add_null();
  }
  parameters.add_integer(before);
  parameters.add_integer(limit);
  const auto found = session.exec({"", in_schema(kRead, schema)}, parameters);
  const auto* rows = found.get();
  std::vector<HistoryRow> history;
  for (int row = 0; row < PQntuples(rows); ++row) {
    history.push_back({integer(rows, row, 0),
                       {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))},
                       text(rows, row, 3),
                       text(rows, row, 4),
                       optional_integer(rows, row, 5),
                       optional_integer(rows, row, 6),
                       text(rows, row, 7),
                       text(rows, row, 8)});
  }
  return history;
}

HistoryEntry::HistoryEntry(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer), record_{"", in_schema(kRecord, schema)} {}

void HistoryEntry::record(postgres::Request& request, const TopicPartition& partition,
                          std::int64_t offset, const std::string& action,
                          const std::string& reason) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(offset);
  parameters.add_text(action);
  parameters.add_text_or_null(reason);
  request = {&record_, std::move(parameters)};
}

void record_action(postgres::Session& session, const std::string& schema, ConsumerId consumer,
                   const TopicPartition& partition, std::int64_t offset, const std::string& action,
                   const std::string& reason) {
  const HistoryEntry entry(schema, consumer);
  std::vector<postgres::Request> steps(1);
  entry.record(steps.front(), partition, offset, action, reason);
  postgres::run_transaction(session, std::move(steps));
}

}  // namespace pawl::ledger
