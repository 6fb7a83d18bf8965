#include "ledger/first_fetches.hpp"

#include "ledger/partition_parameters.hpp"
#include "ledger/rows.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// Whose sessions a role may not see in full have no backend_start for it. After a clean hand-over
// they are not looked for.
constexpr const char* kKnown = R"sql(
  SELECT coalesce(r.updated_at > r.acquired_at, false),
         coalesce(f.started_epoch = r.owner_epoch, false),
         NOT r.released AND EXISTS (
           SELECT FROM pg_stat_activity a
            WHERE a.pid = r.owner_pid
              AND coalesce(a.backend_start = r.owner_backend_start, true)),
         coalesce(f.kafka_offset, -1), coalesce(f.crashes, 0),
         coalesce(f.fetched_by = r.owner, false)
    FROM pawl.processed_kafka_offsets r
    LEFT JOIN pawl.first_fetches f
      ON (f.consumer_id, f.topic, f.partition) = (r.consumer_id, r.topic, r.partition)
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     FOR NO KEY UPDATE OF r
)sql";

// Whatever has moved since its acquire shows by itself that it was begun.
constexpr const char* kNoteBegun = R"sql(
  INSERT INTO pawl.first_fetches AS f (consumer_id, topic, partition, started_epoch)
  SELECT r.consumer_id, r.topic, r.partition, r.owner_epoch
    FROM unnest($2::text[], $3::integer[], $4::bigint[]) AS b (topic, partition, epoch)
    JOIN pawl.processed_kafka_offsets r
      ON r.consumer_id = $1::integer AND r.topic = b.topic AND r.partition = b.partition
         AND r.owner_epoch = b.epoch
   WHERE r.updated_at <= r.acquired_at
   ORDER BY r.topic, r.partition
  ON CONFLICT (consumer_id, topic, partition) DO UPDATE SET started_epoch = excluded.started_epoch
)sql";

constexpr const char* kCount = R"sql(
  INSERT INTO pawl.first_fetches AS f (consumer_id, topic, partition, kafka_offset, crashes)
  SELECT r.consumer_id, r.topic, r.partition, $5::bigint, $6::integer
    FROM pawl.processed_kafka_offsets r
   WHERE r.consumer_id = $1::integer AND r.topic = $2 AND r.partition = $3::integer
     AND r.owner_epoch = $4::bigint
  ON CONFLICT (consumer_id, topic, partition) DO UPDATE
     SET kafka_offset = excluded.kafka_offset, crashes = excluded.crashes, fetched_by = NULL
)sql";

constexpr const char* kMark = R"sql(
  UPDATE pawl.first_fetches f
     SET fetched_by = $5
    FROM pawl.processed_kafka_offsets r
   WHERE f.consumer_id = $1::integer AND f.topic = $2 AND f.partition = $3::integer
     AND (r.consumer_id, r.topic, r.partition) = (f.consumer_id, f.topic, f.partition)
     AND r.owner_epoch = $4::bigint
)sql";

constexpr const char* kForget = R"sql(
  DELETE FROM pawl.first_fetches f
   USING pawl.processed_kafka_offsets r
   WHERE f.consumer_id = $1::integer AND f.topic = $2 AND f.partition = $3::integer
     AND (r.consumer_id, r.topic, r.partition) = (f.consumer_id, f.topic, f.partition)
     AND r.owner_epoch = $4::bigint
)sql";

}  // namespace

FirstFetches::FirstFetches(const std::string& schema, ConsumerId consumer)
    : consumer_(consumer),
      known_{"pawl_first_fetch", in_schema(kKnown, schema)},
      note_begun_{"pawl_note_begun", in_schema(kNoteBegun, schema)},
      count_{"pawl_count_fetch_crashes", in_schema(kCount, schema)},
      mark_{"pawl_mark_fetch", in_schema(kMark, schema)},
      forget_{"pawl_forget_fetch", in_schema(kForget, schema)} {}

postgres::Request FirstFetches::known(const TopicPartition& partition) const {
  return {&known_, partition_parameters(consumer_, partition)};
}

FirstFetch FirstFetches::read_known(const PGresult* rows) {
  FirstFetch fetch;
  if (PQntuples(rows) == 0)
    return fetch;
  fetch.moved = boolean(rows, 0, 0);
  fetch.begun = boolean(rows, 0, 1);
  fetch.owner_lives = boolean(rows, 0, 2);
  fetch.offset = integer(rows, 0, 3);
  fetch.crashes = static_cast<std::uint32_t>(integer(rows, 0, 4));
  fetch.marked = boolean(rows, 0, 5);
  return fetch;
}

void FirstFetches::note_begun(postgres::Session& session,
                              const std::map<TopicPartition, OwnerEpoch>& begun) const {
  postgres::run_relaxed_transaction(session, {{&note_begun_, held_parameters(consumer_, begun)}});
}

void FirstFetches::count(postgres::Session& session, const TopicPartition& partition,
                         OwnerEpoch epoch, std::int64_t offset, std::uint32_t crashes) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_integer(offset);
  parameters.add_integer(crashes);
  postgres::run_transaction(session, {{&count_, std::move(parameters)}});
}

bool FirstFetches::mark(postgres::Session& session, const TopicPartition& partition,
                        OwnerEpoch epoch, const std::string& owner) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  parameters.add_text(owner);
  const auto results = postgres::run_transaction(session, {{&mark_, std::move(parameters)}});
  return postgres::affected_rows(results.front().get()) == 1;
}

void FirstFetches::forget(postgres::Session& session, const TopicPartition& partition,
                          OwnerEpoch epoch) const {
  auto parameters = partition_parameters(consumer_, partition);
  parameters.add_integer(static_cast<std::int64_t>(epoch));
  postgres::run_transaction(session, {{&forget_, std::move(parameters)}});
}

}  // namespace pawl::ledger
