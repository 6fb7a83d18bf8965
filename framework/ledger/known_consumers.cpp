#include "ledger/known_consumers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ledger/processes.hpp"
#include "ledger/rows.hpp"
#include "postgres/parameters.hpp"
#include "postgres/statement.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// A process tells that it lives (pawl.processes), unless all of its workers wait for handlers; then
// its sessions do, where no pooler hides them.
constexpr const char* kLive = R"sql(
  SELECT p.owner FROM pawl.processes p
   WHERE p.consumer_id = $1::integer
     AND p.seen_at > clock_timestamp() - make_interval(secs => $2::integer)
   UNION
  SELECT r.owner FROM pawl.processed_kafka_offsets r
    JOIN pg_stat_activity a ON a.pid = r.owner_pid
                               AND coalesce(a.backend_start = r.owner_backend_start, true)
   WHERE r.consumer_id = $1::integer AND NOT r.released
)sql";

constexpr const char* kConsumers = R"sql(
  SELECT c.consumer_id, c.cluster, c.group_id,
         (SELECT count(*) FROM pawl.processed_kafka_offsets r WHERE r.consumer_id = c.consumer_id),
         (SELECT to_char(max(updated_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM pawl.processed_kafka_offsets r WHERE r.consumer_id = c.consumer_id),
         (SELECT count(*) FROM pawl.dead_letters d
           WHERE d.consumer_id = c.consumer_id AND d.status = 'dead' AND d.due_at IS NULL)
    FROM pawl.consumers c
   ORDER BY c.cluster, c.group_id
)sql";

constexpr const char* kScopes = R"sql(
  SELECT DISTINCT s.name
    FROM pawl.consumer_topics t
    JOIN pawl.scope_sources u USING (source_id)
    JOIN pawl.idempotency_scopes s USING (scope_id)
   WHERE t.consumer_id = $1::integer
   ORDER BY s.name
)sql";

// The consumer's row keeps first contacts away: what they insert refers to it. All later statements
// go by what this one has found.
constexpr const char* kBegin = R"sql(
  WITH consumer AS (
         SELECT consumer_id FROM pawl.consumers WHERE consumer_id = $1::integer FOR UPDATE),
       live AS ({})
  SELECT set_config('pawl.forget', CASE WHEN EXISTS (SELECT FROM live) THEN 'no' ELSE 'yes' END,
                    true),
         (SELECT coalesce(string_agg(owner, ', ' ORDER BY owner), '') FROM live)
    FROM consumer
)sql";

// Of processes that died. A stray one that commits later finds no row to advance.
constexpr const char* kRelease = R"sql(
  UPDATE pawl.processed_kafka_offsets SET released = true
   WHERE consumer_id = $1::integer AND NOT released AND current_setting('pawl.forget') = 'yes'
)sql";

constexpr const char* kHistory = R"sql(
  INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, reason)
  SELECT consumer_id, topic, partition, 'remove', last_processed_offset + 1, $2
    FROM pawl.processed_kafka_offsets
   WHERE consumer_id = $1::integer AND current_setting('pawl.forget') = 'yes'
)sql";

constexpr const char* kAhead = R"sql(
  DELETE FROM pawl.out_of_order_completions a USING pawl.partition_fences f
   WHERE f.fence_id = a.fence_id AND f.consumer_id = $1::integer
     AND current_setting('pawl.forget') = 'yes'
)sql";

constexpr const char* kSources = R"sql(
  DELETE FROM pawl.scope_sources u USING pawl.consumer_topics t
   WHERE t.source_id = u.source_id AND t.consumer_id = $1::integer
     AND current_setting('pawl.forget') = 'yes'
)sql";

constexpr const char* kOfConsumer = R"sql(
  DELETE FROM pawl.{} WHERE consumer_id = $1::integer AND current_setting('pawl.forget') = 'yes'
)sql";

postgres::Parameters parameters_of(ConsumerId consumer) {
  postgres::Parameters parameters;
  parameters.add_integer(static_cast<std::int64_t>(consumer));
  return parameters;
}

}  // namespace

std::vector<ConsumerView> known_consumers(postgres::Session& session, const std::string& schema) {
  const postgres::Statement live{"", in_schema(kLive, schema)};
  const postgres::Statement scopes{"", in_schema(kScopes, schema)};
  const auto found = session.exec({"", in_schema(kConsumers, schema)});
  const auto* rows = found.get();
  std::vector<ConsumerView> consumers;
  for (int row = 0; row < PQntuples(rows); ++row) {
    ConsumerView consumer;
    consumer.id = ConsumerId{static_cast<std::int32_t>(integer(rows, row, 0))};
    consumer.cluster = text(rows, row, 1);
    consumer.group = text(rows, row, 2);
    consumer.partitions = integer(rows, row, 3);
    consumer.updated = text(rows, row, 4);
    consumer.letters = integer(rows, row, 5);
    auto of_live = parameters_of(consumer.id);
    of_live.add_integer(kLiveProcess.count());
    const auto processes = session.exec(live, of_live);
    for (int i = 0; i < PQntuples(processes.get()); ++i)
      consumer.live.push_back(text(processes.get(), i, 0));
    auto of_scopes = parameters_of(consumer.id);
    const auto shared = session.exec(scopes, of_scopes);
    for (int i = 0; i < PQntuples(shared.get()); ++i)
      consumer.scopes.push_back(text(shared.get(), i, 0));
    consumers.push_back(std::move(consumer));
  }
  return consumers;
}

Forgotten forget_consumer(postgres::Session& session, const std::string& schema,
                          ConsumerId consumer, const std::string& reason, bool letters) {
  const auto statement = [&schema](const std::string& text) {
    return postgres::Statement{"", in_schema(text, schema)};
  };
  const auto begin = statement(fmt::format(kBegin, kLive));
  const auto release = statement(kRelease);
  const auto history = statement(kHistory);
  const auto ahead = statement(kAhead);
  const auto sources = statement(kSources);
  std::vector<postgres::Statement> removals;
  for (const auto* table :
       {"processed_kafka_offsets", "partition_fences", "suspects", "first_fetches", "processes",
        "process_conditions", "retention_state", "dead_letter_feed"})
    removals.push_back(statement(fmt::format(kOfConsumer, table)));
  const auto without_letters = removals.size();
  if (letters) {
    for (const auto* table : {"dead_letters", "skipped_messages", "parked_keys"})
      removals.push_back(statement(fmt::format(kOfConsumer, table)));
  }

  auto first = parameters_of(consumer);
  first.add_integer(kLiveProcess.count());
  auto told = parameters_of(consumer);
  told.add_text(reason);
  std::vector<postgres::Request> requests;
  requests.push_back({&begin, std::move(first)});
  requests.push_back({&release, parameters_of(consumer)});
  requests.push_back({&history, std::move(told)});
  requests.push_back({&ahead, parameters_of(consumer)});
  const auto shares = requests.size();
  requests.push_back({&sources, parameters_of(consumer)});
  const auto removed = requests.size();
  for (const auto& removal : removals)
    requests.push_back({&removal, parameters_of(consumer)});
  const auto results = postgres::run_transaction(session, std::move(requests));
  const auto count = [&](std::size_t at) {
    return static_cast<std::int64_t>(postgres::affected_rows(results[at].get()));
  };
  Forgotten forgotten;
  forgotten.live = text(results.front().get(), 0, 1);
  forgotten.scopes = count(shares);
  forgotten.partitions = count(removed);
  if (letters) {
    forgotten.letters = count(removed + without_letters);
    forgotten.skipped = count(removed + without_letters + 1);
  }
  return forgotten;
}

}  // namespace pawl::ledger
