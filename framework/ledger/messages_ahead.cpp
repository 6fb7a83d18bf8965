#include "ledger/messages_ahead.hpp"

#include <fmt/format.h>

#include "ledger/advance_text.hpp"
#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// The class is that of pawl.raise_fence.
constexpr const char* kHoldFence = "SELECT pg_advisory_xact_lock_shared(1885435750, $1::integer)";

constexpr const char* kKeepFence =
    "SELECT FROM pawl.partition_fences WHERE fence_id = $1::integer FOR SHARE";

// Raises instead of inserting nothing, also where a row is missing: COMMIT is on its way behind it.
// A database that went back, under a pooler that kept the connection, may have the same epoch as
// before. Its stored offset tells, and where that waits for an earlier message, the message that
// came before in the same order key.
constexpr const char* kFinish = R"sql(
  INSERT INTO pawl.out_of_order_completions AS a (fence_id, kafka_offset, outcome, leader_epoch, digest)
  SELECT $1::integer, $3::bigint, $4, $5::integer, $6::bigint
    FROM (SELECT) one
    LEFT JOIN pawl.partition_fences f ON f.fence_id = $1::integer
    LEFT JOIN pawl.processed_kafka_offsets r
           ON (r.consumer_id, r.topic, r.partition) = (f.consumer_id, f.topic, f.partition)
   WHERE CASE WHEN f.epoch = $2::bigint
               AND r.owner_epoch = $2::bigint
               AND r.last_processed_offset >= $8::bigint
               AND coalesce($7::xid8 = pg_current_xact_id_if_assigned(), $7::xid8 IS NULL)
              THEN CASE WHEN $9::bigint IS NULL OR r.last_processed_offset >= $9::bigint
                          OR pawl.is_finished($1::integer, $9::bigint)
                        THEN true
                        ELSE pawl.reject_predecessor($1::integer, $9::bigint) END
              ELSE pawl.reject_finish($1::integer, $2::bigint, $8::bigint, $7::xid8)
         END
  ON CONFLICT (fence_id, kafka_offset) DO UPDATE
     SET outcome = CASE WHEN a.outcome IS NULL OR a.digest <> excluded.digest THEN excluded.outcome
                        ELSE pawl.reject_second_finish(a) END,
         leader_epoch = excluded.leader_epoch, digest = excluded.digest,
         changed_at = excluded.changed_at
)sql";

constexpr const char* kCountAttempt = R"sql(
  INSERT INTO pawl.out_of_order_completions AS a (fence_id, kafka_offset, attempts, leader_epoch, digest)
  SELECT f.fence_id, $3::bigint, 1, $4::integer, $5::bigint
    FROM pawl.partition_fences f
   WHERE f.fence_id = $1::integer AND f.epoch = $2::bigint
  ON CONFLICT (fence_id, kafka_offset) DO UPDATE
     SET attempts = CASE WHEN a.digest = excluded.digest THEN a.attempts ELSE 0 END + 1,
         outcome = NULL, leader_epoch = excluded.leader_epoch, digest = excluded.digest,
         changed_at = excluded.changed_at
   WHERE a.outcome IS NULL OR a.digest <> excluded.digest
  RETURNING a.attempts
)sql";

constexpr const char* kPass = R"sql(
  WITH passed AS MATERIALIZED (
    SELECT outcome FROM pawl.remove_completions($6::integer, $7::bigint, $8::bigint)),
  counted AS MATERIALIZED (
    SELECT count(outcome) AS finished,
           count(*) FILTER (WHERE outcome IN ('applied', 'unchecked')) AS applied,
           count(*) FILTER (WHERE outcome = 'unchecked') AS unchecked,
           count(*) FILTER (WHERE outcome = 'duplicate') AS duplicates,
           count(*) FILTER (WHERE outcome = 'skipped') AS skipped,
           count(*) FILTER (WHERE outcome = 'dead') AS dead,
           count(*) FILTER (WHERE outcome = 'parked') AS parked
      FROM passed)
  UPDATE pawl.processed_kafka_offsets r
     SET last_processed_offset =
           CASE WHEN r.owner_epoch = $4::bigint
                 AND r.last_processed_offset = $7::bigint
                 AND $8::bigint > $7::bigint
                 AND c.finished >= $5::bigint
                THEN $8::bigint
                ELSE pawl.reject_advance_past(r, $4::bigint, $7::bigint, $8::bigint, $5::bigint,
                                         c.finished)
           END,
  {}
         applied_count = r.applied_count + c.applied,
         unchecked_count = r.unchecked_count + c.unchecked,
         duplicate_count = r.duplicate_count + c.duplicates,
         skipped_count = r.skipped_count + c.skipped,
         dead_count = r.dead_count + c.dead,
         parked_count = r.parked_count + c.parked,
         leader_epoch = $9::integer,
         last_timestamp_ms = coalesce($10::bigint, r.last_timestamp_ms),
         updated_at = clock_timestamp()
    FROM counted c
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
)sql";

// Before the rows, as whoever changes the position does it.
constexpr const char* kLockRow = R"sql(
  SELECT FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND topic = $2 AND partition = $3::integer
     FOR NO KEY UPDATE
)sql";

constexpr const char* kKnown = R"sql(
  SELECT a.kafka_offset, a.outcome, a.attempts, a.leader_epoch, a.digest
    FROM pawl.out_of_order_completions a
    JOIN pawl.partition_fences f USING (fence_id)
    JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     AND a.kafka_offset > r.last_processed_offset
   ORDER BY a.kafka_offset
)sql";

// A plain advance passes messages by itself.
constexpr const char* kForgetPassed = R"sql(
  DELETE FROM pawl.out_of_order_completions a
   USING pawl.partition_fences f JOIN pawl.processed_kafka_offsets r USING (consumer_id, topic, partition)
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     AND a.fence_id = f.fence_id AND a.kafka_offset <= r.last_processed_offset
)sql";

postgres::Parameters number_of(const Fence& fence) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(fence.id));
  return parameters;
}

void add_fence(postgres::Parameters& parameters, const Fence& fence) {
  parameters.add_integer(static_cast<std::int64_t>(fence.id));
  parameters.add_integer(static_cast<std::int64_t>(fence.epoch));
}

}  // namespace

MessagesAhead::MessagesAhead(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      hold_fence_{"pawl_hold_fence", kHoldFence},
      keep_fence_{"pawl_keep_fence", in_schema(kKeepFence, schema)},
      finish_{"pawl_finish_ahead", in_schema(kFinish, schema)},
      count_attempt_{"pawl_count_attempt_ahead", in_schema(kCountAttempt, schema)},
      pass_{"pawl_pass_ahead", in_schema(fmt::format(fmt::runtime(kPass), ""), schema)},
      pass_halted_{"pawl_pass_ahead_halted",
                   in_schema(fmt::format(fmt::runtime(kPass), end_halt_text()), schema)},
      lock_row_{"pawl_lock_register", in_schema(kLockRow, schema)},
      known_{"pawl_known_ahead", in_schema(kKnown, schema)},
      forget_passed_{"pawl_forget_passed", in_schema(kForgetPassed, schema)} {}

postgres::Request MessagesAhead::hold_fence(const Fence& fence) const {
  return {&hold_fence_, number_of(fence)};
}

postgres::Request MessagesAhead::keep_fence(const Fence& fence) const {
  return {&keep_fence_, number_of(fence)};
}

void MessagesAhead::finish(postgres::Request& request, const Fence& fence,
                           const RecordAhead& record, const std::string& transaction,
                           Outcome outcome) const {
  auto& parameters = request.to(finish_);
  add_fence(parameters, fence);
  parameters.add_integer(record.offset);
  parameters.add_text(to_string(outcome));
  parameters.add_optional_integer(record.leader_epoch);
  parameters.add_integer(record.digest);
  parameters.add_text_or_null(transaction);
  parameters.add_integer(fence.stored.last());
  parameters.add_optional_integer(fence.predecessor);
}

std::optional<std::uint32_t> MessagesAhead::count_attempt(postgres::Session& session,
                                                          const Fence& fence,
                                                          const RecordAhead& record) const {
  postgres::Parameters parameters;
  add_fence(parameters, fence);
  parameters.add_integer(record.offset);
  parameters.add_optional_integer(record.leader_epoch);
  parameters.add_integer(record.digest);
  const auto results = postgres::run_transaction(
      session, {hold_fence(fence), {&count_attempt_, std::move(parameters)}});
  const auto* rows = results.back().get();
  if (PQntuples(rows) == 0)
    return std::nullopt;
  return static_cast<std::uint32_t>(integer(rows, 0, 0));
}

void MessagesAhead::pass(postgres::Session& session, const TopicPartition& partition,
                         const Passing& passing, bool durably) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(passing.fence.epoch));
  parameters.add_integer(passing.messages);
  parameters.add_integer(static_cast<std::int64_t>(passing.fence.id));
  parameters.add_integer(passing.from.last());
  parameters.add_integer(passing.to.last());
  parameters.add_optional_integer(passing.leader_epoch);
  add_timestamp(parameters, passing.timestamp);
  std::vector<postgres::Request> requests;
  requests.push_back({&lock_row_, partition_parameters(consumer_, partition)});
  requests.push_back({passing.halted ? &pass_halted_ : &pass_, std::move(parameters)});
  const auto results = durably ? postgres::run_transaction(session, std::move(requests))
                               : postgres::run_relaxed_transaction(session, std::move(requests));
  if (postgres::affected_rows(results.back().get()) == 0)
    throw postgres::Error::row_missing();
}

postgres::Request MessagesAhead::known(const TopicPartition& partition) const {
  return {&known_, partition_parameters(consumer_, partition)};
}

postgres::Request MessagesAhead::forget_passed(const TopicPartition& partition) const {
  return {&forget_passed_, partition_parameters(consumer_, partition)};
}

std::vector<KnownAhead> MessagesAhead::read_known(const PGresult* rows) {
  std::vector<KnownAhead> known;
  for (int row = 0; row < PQntuples(rows); ++row) {
    KnownAhead ahead;
    ahead.record.offset = integer(rows, row, 0);
    if (!is_null(rows, row, 1))
      ahead.outcome = parse_outcome(text(rows, row, 1));
    ahead.attempts = static_cast<std::uint32_t>(integer(rows, row, 2));
    if (const auto epoch = optional_integer(rows, row, 3))
      ahead.record.leader_epoch = static_cast<std::int32_t>(*epoch);
    ahead.record.digest = integer(rows, row, 4);
    known.push_back(ahead);
  }
  return known;
}

}  // namespace pawl::ledger
