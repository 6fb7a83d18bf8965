#include "audit/store/view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "audit/store/ranges.hpp"
#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

constexpr const char* kRows = R"sql(
  SELECT r.topic, r.partition, r.last_processed_offset, r.base_offset - 1,
         coalesce(r.topic_id, ''),
         r.applied_count, r.duplicate_count, r.skipped_count, r.unchecked_count, r.dead_count,
         r.parked_count, coalesce(h.moved_at, '-infinity')::text, r.leader_epoch
    FROM pawl.processed_kafka_offsets r
    LEFT JOIN (SELECT topic, partition, max(happened_at) AS moved_at
                 FROM pawl.offset_history
                WHERE consumer_id = $1::integer AND from_offset <> to_offset
                GROUP BY topic, partition) h USING (topic, partition)
   WHERE r.consumer_id = $1::integer
   ORDER BY r.topic, r.partition
)sql";

constexpr const char* kStepsBack = R"sql(
  SELECT topic, partition, from_offset, to_offset
    FROM pawl.offset_history
   WHERE consumer_id = $1::integer AND from_offset > to_offset
)sql";

constexpr const char* kScopes = R"sql(
  SELECT name, scope_id, ceil(extract(epoch FROM pruned_to) * 1000)::bigint
    FROM pawl.idempotency_scopes
)sql";

constexpr const char* kRecordsPrunedTo = R"sql(
  SELECT ceil(extract(epoch FROM max(records_pruned_to)) * 1000)::bigint
    FROM pawl.retention_state WHERE consumer_id = $1::integer
)sql";

constexpr const char* kFind = R"sql(
  SELECT k.key, k.payload_hash, t.consumer_id = $3::integer, t.topic, k.partition,
         k.kafka_offset, k.created_at >= $4::timestamptz
    FROM pawl.idempotency_keys k
    LEFT JOIN pawl.consumer_topics t USING (source_id)
   WHERE k.scope_id = $1::integer AND k.key = ANY ($2::text[])
)sql";

// Of offsets behind the base only what is of this counting: an older record is of another message
// that had the offset, or of this one when it came before the position was set back.
constexpr const char* kSetAside = R"sql(
  SELECT kafka_offset, bool_or(status IN ('dead', 'discarded')), bool_or(status = 'parked'),
         bool_or(status = 'skipped'), bool_or(status = 'replayed')
    FROM (SELECT kafka_offset, status
            FROM pawl.dead_letters
           WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
             AND kafka_offset > $4::bigint AND kafka_offset <= $5::bigint
             AND (kafka_offset <= $6::bigint OR died_at >= $7::timestamptz)
           UNION ALL
          SELECT kafka_offset, 'skipped'
            FROM pawl.skipped_messages
           WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
             AND kafka_offset > $4::bigint AND kafka_offset <= $5::bigint
             AND (kafka_offset <= $6::bigint OR skipped_at >= $7::timestamptz)) recorded
   GROUP BY kafka_offset
   ORDER BY kafka_offset
)sql";

constexpr const char* kCountKeys = R"sql(
  SELECT a.topic, a.partition, (k.kafka_offset - a.after - 1) / $7::bigint, count(*)
    FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::timestamptz[])
           AS a (topic, partition, after, upto, since)
    JOIN pawl.consumer_topics t ON t.consumer_id = $1::integer AND t.topic = a.topic
    JOIN pawl.idempotency_keys k
      ON k.source_id = t.source_id AND k.partition = a.partition
     AND k.kafka_offset > a.after AND k.kafka_offset <= a.upto AND k.created_at >= a.since
   GROUP BY 1, 2, 3
)sql";

constexpr const char* kKeysIn = R"sql(
  SELECT k.scope_id, k.key, k.kafka_offset
    FROM pawl.idempotency_keys k
    JOIN pawl.consumer_topics t USING (source_id)
   WHERE t.consumer_id = $1::integer AND t.topic = $2 AND k.partition = $3::integer
     AND k.kafka_offset > $4::bigint AND k.kafka_offset <= $5::bigint
     AND k.created_at >= $6::timestamptz
     AND (k.scope_id, k.key) > ($7::integer, $8)
   ORDER BY k.scope_id, k.key
   LIMIT $9::bigint
)sql";

std::int32_t partition_at(const PGresult* rows, int row, int column) {
  return static_cast<std::int32_t>(integer(rows, row, column));
}

}  // namespace

AuditView::AuditView(postgres::Session& session, std::string schema, ConsumerId consumer)
    : session_(session),
      schema_(std::move(schema)),
      consumer_(consumer),
      find_{"pawl_audit_find", in_schema(kFind, schema_)},
      set_aside_{"pawl_audit_set_aside", in_schema(kSetAside, schema_)} {}

postgres::Parameters AuditView::consumer_parameter() const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  return parameters;
}

std::vector<BookRow> AuditView::rows() const {
  auto parameters = consumer_parameter();
  const auto found = session_.exec({"", in_schema(kRows, schema_)}, parameters);
  const auto* rows = found.get();
  std::vector<BookRow> result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    result.push_back({{text(rows, i, 0), partition_at(rows, i, 1)},
                      integer(rows, i, 2),
                      integer(rows, i, 3),
                      text(rows, i, 4),
                      integer(rows, i, 5),
                      integer(rows, i, 6),
                      integer(rows, i, 7),
                      integer(rows, i, 8),
                      integer(rows, i, 9),
                      integer(rows, i, 10),
                      text(rows, i, 11),
                      optional_integer(rows, i, 12)});
  }
  return result;
}

std::map<TopicPartition, std::vector<StepBack>> AuditView::steps_back() const {
  auto parameters = consumer_parameter();
  const auto found = session_.exec({"", in_schema(kStepsBack, schema_)}, parameters);
  const auto* rows = found.get();
  std::map<TopicPartition, std::vector<StepBack>> result;
  for (int i = 0; i < PQntuples(rows); ++i)
    result[{text(rows, i, 0), partition_at(rows, i, 1)}].push_back(
        {integer(rows, i, 2), integer(rows, i, 3)});
  return result;
}

Pruned AuditView::pruned() const {
  const auto found = session_.exec({"", in_schema(kScopes, schema_)});
  const auto* rows = found.get();
  Pruned result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    result.scopes[text(rows, i, 0)] = {ScopeId{static_cast<std::int32_t>(integer(rows, i, 1))},
                                       optional_instant(rows, i, 2)};
  }
  auto parameters = consumer_parameter();
  const auto records = session_.exec({"", in_schema(kRecordsPrunedTo, schema_)}, parameters);
  result.records_to = optional_instant(records.get(), 0, 0);
  return result;
}

std::map<std::string, BookKey> AuditView::find(ScopeId scope, std::span<const std::string> keys,
                                               const std::string& since) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(scope));
  parameters.add_text(text_array(keys));
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(since);
  const auto found = session_.exec(find_, parameters);
  const auto* rows = found.get();
  std::map<std::string, BookKey> result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    auto& key = result[text(rows, i, 0)];
    key.payload_hash = integer(rows, i, 1);
    if (!is_null(rows, i, 2)) {
      key.ours = boolean(rows, i, 2);
      key.source = {text(rows, i, 3), partition_at(rows, i, 4)};
    }
    key.offset = integer(rows, i, 5);
    key.recent = boolean(rows, i, 6);
  }
  return result;
}

std::vector<SetAside> AuditView::set_aside(const OffsetRange& range, std::int64_t base,
                                           const std::string& since) const {
  auto parameters = consumer_parameter();
  add_range(parameters, range);
  parameters.add_integer(base);
  parameters.add_text(since);
  const auto found = session_.exec(set_aside_, parameters);
  const auto* rows = found.get();
  std::vector<SetAside> result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    result.push_back({integer(rows, i, 0), boolean(rows, i, 1), boolean(rows, i, 2),
                      boolean(rows, i, 3), boolean(rows, i, 4)});
  }
  return result;
}

KeyCounts AuditView::count_keys(const std::vector<OffsetRange>& ranges,
                                const std::vector<std::string>& since, std::int64_t window) const {
  auto parameters = consumer_parameter();
  add_ranges(parameters, ranges);
  parameters.add_text(text_array(since));
  parameters.add_integer(window);
  const auto found = session_.exec({"", in_schema(kCountKeys, schema_)}, parameters);
  const auto* rows = found.get();
  KeyCounts counts;
  for (int i = 0; i < PQntuples(rows); ++i)
    counts[{{text(rows, i, 0), partition_at(rows, i, 1)}, integer(rows, i, 2)}] =
        integer(rows, i, 3);
  return counts;
}

std::vector<NamedKey> AuditView::keys_in(const OffsetRange& range, const std::string& since,
                                         const NamedKey* after, int limit) const {
  auto parameters = consumer_parameter();
  add_range(parameters, range);
  parameters.add_text(since);
  parameters.add_integer(after == nullptr ? -1 : static_cast<std::int64_t>(after->scope));
  parameters.add_text(after == nullptr ? std::string() : after->key);
  parameters.add_integer(limit);
  const auto found = session_.exec({"", in_schema(kKeysIn, schema_)}, parameters);
  const auto* rows = found.get();
  std::vector<NamedKey> result;
  for (int i = 0; i < PQntuples(rows); ++i) {
    result.push_back({ScopeId{static_cast<std::int32_t>(integer(rows, i, 0))}, text(rows, i, 1),
                      integer(rows, i, 2)});
  }
  return result;
}

}  // namespace pawl::ledger
