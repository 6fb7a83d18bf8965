#include "ledger/skipped_view.hpp"

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kList = R"sql(
  SELECT topic, partition, kafka_offset, reason, length(record_value),
         nullif(timestamp_ms, -1),
         to_char(skipped_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), actor, record_key,
         headers IS NULL, halt_kind, halt_code, kafka_offset, NULL, halt_cause, halt_parameters
    FROM pawl.skipped_messages
   WHERE consumer_id = $1::integer AND ($2 = '' OR topic = $2)
     AND ($3::integer IS NULL OR partition = $3::integer)
   ORDER BY skip_id DESC
   LIMIT $4::bigint
)sql";

}  // namespace

std::vector<SkippedMessage> list_skipped(postgres::Session& session, const std::string& schema,
                                         ConsumerId consumer, const SkippedFilter& filter,
                                         std::int64_t limit) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  parameters.add_text(filter.topic);
  parameters.add_optional_integer(filter.partition);
  parameters.add_integer(limit);
  const auto found = session.exec({"", in_schema(kList, schema)}, parameters);
  const auto* rows = found.get();
  std::vector<SkippedMessage> result;
  for (int row = 0; row < PQntuples(rows); ++row) {
    SkippedMessage message;
    message.partition = {text(rows, row, 0), static_cast<std::int32_t>(integer(rows, row, 1))};
    message.offset = integer(rows, row, 2);
    message.reason = text(rows, row, 3);
    message.value_bytes = optional_integer(rows, row, 4);
    message.timestamp = optional_instant(rows, row, 5);
    message.skipped_at = text(rows, row, 6);
    message.actor = text(rows, row, 7);
    message.record_key = bytes(rows, row, 8);
    message.omitted = boolean(rows, row, 9);
    if (!is_null(rows, row, 11))
      message.halt = read_halt(rows, row, 10);
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace pawl::ledger
