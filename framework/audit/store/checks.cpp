#include "audit/store/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "audit/store/ranges.hpp"
#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

// An operator may have set an offset back: what is before the next offset of that time is not a
// stray. Nor is a message on which an operator has acted, whose offset the history has instead.
constexpr const char* kBeyond = R"sql(
  WITH bound AS (
    SELECT r.topic, r.partition,
           greatest(r.last_processed_offset + 1, h.next_offset) AS next_offset
      FROM pawl.processed_kafka_offsets r
      LEFT JOIN (SELECT topic, partition, max(from_offset) AS next_offset
                   FROM pawl.offset_history
                  WHERE consumer_id = $1::integer
                    AND action NOT IN ('try', 'dlq replay', 'dlq discard')
                  GROUP BY topic, partition) h USING (topic, partition)
     WHERE r.consumer_id = $1::integer),
   recorded AS (
    SELECT 'key' AS what, t.topic, k.partition, k.kafka_offset, k.key::text AS name
      FROM pawl.idempotency_keys k JOIN pawl.consumer_topics t USING (source_id)
     WHERE t.consumer_id = $1::integer
    UNION ALL
    SELECT 'dead letter', d.topic, d.partition, d.kafka_offset, d.dead_letter_id::text
      FROM pawl.dead_letters d WHERE d.consumer_id = $1::integer
    UNION ALL
    SELECT 'skipped message', s.topic, s.partition, s.kafka_offset, s.skip_id::text
      FROM pawl.skipped_messages s WHERE s.consumer_id = $1::integer)
  SELECT d.what, d.topic, d.partition, d.kafka_offset, d.name, count(*) OVER ()
    FROM recorded d LEFT JOIN bound b USING (topic, partition)
   WHERE d.kafka_offset >= coalesce(b.next_offset, 0)
     AND NOT EXISTS (SELECT FROM pawl.out_of_order_completions a JOIN pawl.partition_fences f USING (fence_id)
                      WHERE f.consumer_id = $1::integer AND f.topic = d.topic
                        AND f.partition = d.partition AND a.kafka_offset = d.kafka_offset
                        AND a.outcome IS NOT NULL)
     AND NOT EXISTS (SELECT FROM pawl.offset_history t
                      WHERE t.consumer_id = $1::integer AND t.topic = d.topic
                        AND t.partition = d.partition AND t.from_offset = d.kafka_offset
                        AND t.action IN ('try', 'dlq replay', 'dlq discard'))
     AND d.topic = ANY ($2::text[]) AND ($3::integer IS NULL OR d.partition = $3::integer)
   ORDER BY d.topic, d.partition, d.kafka_offset
   LIMIT $4::bigint
)sql";

constexpr const char* kParkedWithoutHead = R"sql(
  SELECT 'dead letter', d.topic, d.partition, d.kafka_offset, d.dead_letter_id, count(*) OVER ()
    FROM pawl.dead_letters d
   WHERE d.consumer_id = $1::integer AND d.status = 'parked' AND d.record_key_hash IS NOT NULL
     AND NOT EXISTS (SELECT FROM pawl.parked_keys k
                      WHERE k.consumer_id = d.consumer_id AND k.topic = d.topic
                        AND k.record_key_hash = d.record_key_hash)
     AND d.topic = ANY ($2::text[]) AND ($3::integer IS NULL OR d.partition = $3::integer)
   ORDER BY d.topic, d.partition, d.kafka_offset
   LIMIT $4::bigint
)sql";

constexpr const char* kWaitingForNothing = R"sql(
  SELECT 'dead letter', d.topic, d.partition, d.kafka_offset, d.dead_letter_id, count(*) OVER ()
    FROM pawl.parked_keys k
    JOIN pawl.dead_letters d
      ON d.dead_letter_id = pawl.first_dead_letter(k.consumer_id, k.topic, k.record_key_hash)
   WHERE k.consumer_id = $1::integer AND d.due_at = 'infinity'
     AND d.topic = ANY ($2::text[]) AND ($3::integer IS NULL OR d.partition = $3::integer)
   ORDER BY d.topic, d.partition, d.kafka_offset
   LIMIT $4::bigint
)sql";

// As joins: looked up one by one, a million of them would take longer than all other checks.
constexpr const char* kReplayedWithoutKey = R"sql(
  SELECT 'dead letter', d.topic, d.partition, d.kafka_offset, d.dead_letter_id, count(*) OVER ()
    FROM pawl.dead_letters d
    JOIN unnest($5::text[], $6::text[], $7::integer[], $8::bigint[])
           AS s (topic, handler, scope_id, pruned_to_ms)
      ON s.topic = d.topic AND s.handler = d.handler
     AND (s.pruned_to_ms IS NULL OR d.timestamp_ms >= s.pruned_to_ms)
   WHERE d.consumer_id = $1::integer AND d.status = 'replayed'
     AND d.resolution IN ('applied', 'duplicate') AND d.idempotency_key IS NOT NULL
     AND NOT EXISTS (SELECT FROM pawl.idempotency_keys k
                      WHERE k.scope_id = s.scope_id AND k.key = d.idempotency_key)
     AND NOT EXISTS (SELECT FROM unnest($9::text[], $10::integer[], $11::bigint[],
                                        $12::bigint[]) AS a (topic, partition, after, upto)
                      WHERE a.topic = d.topic AND a.partition = d.partition
                        AND d.kafka_offset > a.after AND d.kafka_offset <= a.upto)
     AND d.topic = ANY ($2::text[]) AND ($3::integer IS NULL OR d.partition = $3::integer)
   ORDER BY d.topic, d.partition, d.kafka_offset
   LIMIT $4::bigint
)sql";

constexpr const char* kRecorded = R"sql(
  WITH a AS (
    SELECT * FROM unnest($2::text[], $3::integer[], $4::bigint[], $5::bigint[],
                         $6::timestamptz[])
               AS a (topic, partition, after, upto, since))
  SELECT a.topic, a.partition, true, count(DISTINCT d.kafka_offset)
    FROM a JOIN pawl.dead_letters d
      ON d.consumer_id = $1::integer AND d.topic = a.topic AND d.partition = a.partition
     AND d.kafka_offset > a.after AND d.kafka_offset <= a.upto AND d.died_at >= a.since
   GROUP BY a.topic, a.partition
   UNION ALL
  SELECT a.topic, a.partition, false, count(DISTINCT s.kafka_offset)
    FROM a JOIN pawl.skipped_messages s
      ON s.consumer_id = $1::integer AND s.topic = a.topic AND s.partition = a.partition
     AND s.kafka_offset > a.after AND s.kafka_offset <= a.upto AND s.skipped_at >= a.since
   GROUP BY a.topic, a.partition
)sql";

}  // namespace

postgres::Parameters AuditChecks::filter_parameters(std::int64_t limit) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  parameters.add_text(text_array(filter_.topics));
  parameters.add_optional_integer(filter_.partition);
  parameters.add_integer(limit);
  return parameters;
}

Strays AuditChecks::ask(const std::string& sql, postgres::Parameters parameters) const {
  const auto found = session_.exec({"", in_schema(sql, schema_)}, parameters);
  const auto* rows = found.get();
  Strays strays;
  for (int row = 0; row < PQntuples(rows); ++row) {
    strays.rows.push_back({text(rows, row, 0),
                           {text(rows, row, 1), static_cast<std::int32_t>(integer(rows, row, 2))},
                           integer(rows, row, 3),
                           text(rows, row, 4)});
    strays.total = integer(rows, row, 5);
  }
  return strays;
}

Strays AuditChecks::beyond_offsets(std::int64_t limit) const {
  return ask(kBeyond, filter_parameters(limit));
}

Strays AuditChecks::parked_without_head(std::int64_t limit) const {
  return ask(kParkedWithoutHead, filter_parameters(limit));
}

Strays AuditChecks::waiting_for_nothing(std::int64_t limit) const {
  return ask(kWaitingForNothing, filter_parameters(limit));
}

Strays AuditChecks::replayed_without_key(const std::vector<HandlerScope>& scopes,
                                         const std::vector<OffsetRange>& read,
                                         std::int64_t limit) const {
  std::vector<std::string> topics;
  std::vector<std::string> handlers;
  std::vector<std::int32_t> ids;
  std::vector<std::string> pruned;
  for (const auto& scope : scopes) {
    topics.push_back(scope.topic);
    handlers.push_back(scope.handler);
    ids.push_back(static_cast<std::int32_t>(scope.scope.id));
    pruned.push_back(scope.scope.pruned_to
                         ? std::to_string(scope.scope.pruned_to->time_since_epoch().count())
                         : "NULL");
  }
  auto parameters = filter_parameters(limit);
  parameters.add_text(text_array(topics));
  parameters.add_text(text_array(handlers));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(ids, ",")));
  parameters.add_text(fmt::format("{{{}}}", fmt::join(pruned, ",")));
  add_ranges(parameters, read);
  return ask(kReplayedWithoutKey, std::move(parameters));
}

std::map<TopicPartition, RecordedCounts> AuditChecks::recorded(
    const std::vector<OffsetRange>& ranges, const std::vector<std::string>& since) const {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer_));
  add_ranges(parameters, ranges);
  parameters.add_text(text_array(since));
  const auto found = session_.exec({"", in_schema(kRecorded, schema_)}, parameters);
  const auto* rows = found.get();
  std::map<TopicPartition, RecordedCounts> counts;
  for (int row = 0; row < PQntuples(rows); ++row) {
    auto& of = counts[{text(rows, row, 0), static_cast<std::int32_t>(integer(rows, row, 1))}];
    (boolean(rows, row, 2) ? of.letters : of.skips) = integer(rows, row, 3);
  }
  return counts;
}

}  // namespace pawl::ledger
