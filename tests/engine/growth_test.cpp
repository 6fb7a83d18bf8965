// What a message, a dead letter or a background task costs does not grow with the tables: plans
// that were made while they were empty are used when they are large, and nothing analyzes them in
// between.
#include <fmt/format.h>

#include <map>
#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "postgres/session.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "retention/store/retention.hpp"

namespace {

constexpr int kRows = 100'000;
/// Of 8 KB. Each of the tables, and each of their indexes, has more.
constexpr std::int64_t kMostBlocks = 250;

/// Half of the dead letters are resolved; all are of one partition.
std::string fill(const std::string& topic) {
  return fmt::format(R"sql(
  INSERT INTO pawl.dead_letters
         (consumer_id, topic, partition, kafka_offset, timestamp_ms, message_digest, status, reason, handler,
          idempotency_key, error, record_key, record_key_hash, value_bytes, payload, resolved_at, resolution)
  SELECT min(c.consumer_id), '{0}', 0, 1000000 + i, 1700000000000, sha256(i::text::bytea),
         CASE WHEN i % 2 = 0 THEN 'dead' ELSE 'replayed' END, 'error', 'h', 'other-' || i, 'e',
         i::text::bytea, sha256(i::text::bytea), 1, 'complete', CASE WHEN i % 2 = 1 THEN now() END,
         CASE WHEN i % 2 = 1 THEN 'applied' END
    FROM pawl.consumers c CROSS JOIN generate_series(1, {1}) i GROUP BY i;
  INSERT INTO pawl.parked_keys (consumer_id, topic, record_key_hash)
  SELECT min(c.consumer_id), '{0}', sha256(i::text::bytea)
    FROM pawl.consumers c CROSS JOIN generate_series(1, {1}) i GROUP BY i;
  INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, kafka_offset)
  SELECT 1, 'other-' || i, 0, 1, 0, 1000000 + i FROM generate_series(1, {1}) i;
  INSERT INTO pawl.leases (scope_id, key, token, payload_hash, source_id, partition, kafka_offset)
  SELECT 1, 'other-' || i, -1, 0, 1, 0, 1000000 + i FROM generate_series(1, {1}) i;
  INSERT INTO pawl.out_of_order_completions (fence_id, kafka_offset, outcome, digest)
  SELECT 1000000, i, 'applied', 0 FROM generate_series(1, {1}) i;
)sql",
                     topic, kRows);
}

constexpr const char* kGrowing =
    "('dead_letters', 'parked_keys', 'idempotency_keys', 'out_of_order_completions')";

/// As they are after they were analyzed while empty, for as long as autovacuum does not come.
void analyze_empty(const std::string& url) {
  pqxx::connection connection(url);
  pqxx::nontransaction statement(connection);
  for (const auto* table :
       {"dead_letters", "parked_keys", "idempotency_keys", "leases", "out_of_order_completions"}) {
    statement.exec(fmt::format("ALTER TABLE pawl.{} SET (autovacuum_enabled = false)", table));
    statement.exec(fmt::format("ANALYZE pawl.{}", table));
  }
}

/// What is called per message, per dead letter, or by a background task, each with what it needs of
/// those before it.
constexpr const char* kCalls[] = {
    "pawl.store_dead_letter(1, 't', 'x', 0, 5, 0, 5, 'dead', 'error', 'h', 'k', '22000', NULL, "
    "'e', 'd', "
    "1, 'a', "
    "sha256('a'), 'v', 1, NULL,"
    " 'complete', '\\x01')",
    "pawl.store_dead_letter(1, 't', 'x', 0, 5, 0, 5, 'parked', 'error', 'h', 'k', '22000', NULL, "
    "'e', "
    "'d', 1, 'a', "
    "sha256('a'), 'v', 1,"
    " NULL, 'complete', '\\x01')",
    "pawl.store_dead_letter(1, 't', 'x', 0, 6, 0, 5, 'parked', 'error', 'h', 'k', '22000', NULL, "
    "'e', "
    "'d', 1, 'a', "
    "sha256('a'), 'v', 1,"
    " NULL, 'complete', '\\x02')",
    "pawl.schedule_dead_letter(1, 't', 0, 5, '\\x01', 0)",
    "pawl.schedule_dead_letter(1, 't', 0, 6, '\\x02', NULL)",
    "pawl.first_parked(1, 't', ARRAY['b', 'a']::bytea[])",
    "pawl.is_parked(1, 't', 'a')",
    "pawl.dead_letter_before(currval('pawl.dead_letters_dead_letter_id_seq'))",
    "pawl.lock_record_key(currval('pawl.dead_letters_dead_letter_id_seq'))",
    "pawl.claim_due_dead_letter(currval('pawl.dead_letters_dead_letter_id_seq') - 1, 0, interval "
    "'1s')",
    "count(*) FROM pawl.stored_key(1, 'k')",
    "pawl.is_finished(1, 5)",
    "count(*) FROM pawl.remove_completions(1, 5, 6)",
    "count(*) FROM pawl.acquire_lease(1, 'call', 'me', 7, 60000, 0, false, 1, 0, 5, NULL, NULL, "
    "NULL, 1, 't', NULL)",
    "count(*) FROM pawl.extend_leases('me', 60000, ARRAY[1], ARRAY['call'], ARRAY[7]::bigint[])",
    "pawl.release_lease(1, 'call', 'me', 7, 'not done', false, NULL)",
    "pawl.check_before_call(1, 'other call', NULL, NULL, NULL, 1, 't', NULL)",
    "pawl.record_call(1, 'recorded at ' || clock_timestamp(), NULL, 0, 0, 1, 0, 5, NULL, NULL)",
    "pawl.resolve_dead_letter(currval('pawl.dead_letters_dead_letter_id_seq') - 1, NULL, "
    "'replayed', 'applied')",
    "pawl.resolve_dead_letter(currval('pawl.dead_letters_dead_letter_id_seq'), NULL, 'discarded', "
    "'x')"};

void send(PaymentsWorld& world, const std::string& event, int account, int amount) {
  pawl::testing::Record record;
  record.key = fmt::format("acc-{}", account);
  record.value = fmt::format(R"({{"account":"acc-{}","amount":{}}})", account, amount);
  record.headers = {{"event-id", event}};
  record.partition = 0;
  world.produce_record(record);
}

/// Of each account one message that fails, one that waits behind it, and of another key one that
/// comes twice.
void send_round(PaymentsWorld& world, int first_account) {
  for (int account = first_account; account < first_account + 10; ++account) {
    send(world, fmt::format("fails-{}", account), account, -1);
    send(world, fmt::format("behind-{}", account), account, 1);
    for (int i = 0; i < 2; ++i)
      send(world, fmt::format("twice-{}", account), account + 50, 1);
  }
}

/// Itself by an index, since whole tables that are read are counted.
std::int64_t unresolved(const PaymentsWorld& world, const std::string& which) {
  return world.number(
      fmt::format("SET enable_seqscan = off; "
                  "SELECT count(*) FROM pawl.dead_letters WHERE kafka_offset < 1000000 AND {}",
                  which));
}

}  // namespace

TEST_CASE(
    "what is called per message reads a few blocks of tables that were empty when it was planned") {
  const auto url = PostgresServer::shared().create_database("growth");
  analyze_empty(url);
  pqxx::connection connection(url);
  pqxx::nontransaction statement(connection);
  statement.exec("SET plan_cache_mode = force_generic_plan");
  statement.exec("INSERT INTO pawl.consumers (cluster, group_id) VALUES ('c', 'g')");
  statement.exec(
      "INSERT INTO pawl.processed_kafka_offsets (consumer_id, topic, partition, "
      "last_processed_offset,"
      " base_offset) VALUES (1, 't', 0, 10, 11)");
  statement.exec(
      "INSERT INTO pawl.parked_keys (consumer_id, topic, record_key_hash) VALUES (1, 't', "
      "sha256('a'))");
  statement.exec(R"sql(
  CREATE FUNCTION blocks_of(call text) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
      plan json;
  BEGIN
      EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT ' || call INTO plan;
      RETURN (plan->0->'Plan'->>'Shared Hit Blocks')::bigint + (plan->0->'Plan'->>'Shared Read Blocks')::bigint;
  END $$)sql");
  const auto blocks_of = [&](const char* call) {
    return statement.exec(fmt::format("SELECT blocks_of({})", connection.quote(call)))[0][0]
        .as<std::int64_t>();
  };
  for (const auto* call : kCalls)
    (void)blocks_of(call);
  statement.exec(fill("t"));
  // What the server's caches lost is read again once.
  for (const auto* call : kCalls)
    (void)blocks_of(call);
  for (const auto* call : kCalls) {
    CAPTURE(call);
    CHECK(blocks_of(call) <= kMostBlocks);
  }
}

TEST_CASE("a dry run of retention reads a part of a large table of keys") {
  PaymentsWorld world(1);
  world.execute(
      "INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, "
      "kafka_offset, created_at) SELECT 1, 'k' || i, 0, 1, 0, i, now() - i % 2 * interval '2 days'"
      " FROM generate_series(1, 100000) i");
  postgres::SessionSettings settings;
  settings.url = world.url();
  postgres::Session session(settings);
  const ledger::Retention retention("pawl", ledger::ConsumerId{1});
  const auto blocks = retention.blocks(session);
  const std::map<ledger::ScopeId, ledger::Instant> cutoffs{
      {ledger::ScopeId{1}, retention.now(session) - std::chrono::hours(24)}};
  const auto all = retention.count_keys(session, cutoffs, blocks);
  CHECK(all.keys == 50'000);
  CHECK_FALSE(all.estimated);
  const auto estimate = retention.count_keys(session, cutoffs, blocks / 4);
  CHECK(estimate.estimated);
  CHECK(estimate.keys > 30'000);
  CHECK(estimate.keys < 70'000);
}

TEST_CASE("a running consumer never reads a whole table that has grown since it began") {
  const auto policy = GENERATE("dead-letter"s, "park"s, "retry-later"s);
  const auto how = GENERATE("sql"s, "flights"s, "sql batches"s, "sql side by side"s);
  CAPTURE(policy, how);
  PaymentsWorld world(1);
  auto used = mode(how);
  // What may be parked waits by its record key.
  if (const auto order = used.handler.find("{/account}\"\nconcurrency_window");
      order != std::string::npos)
    used.handler.replace(order, std::string_view("{/account}").size(), "{key}");
  world.use(used);
  world.execute("ALTER TABLE ledger ADD CHECK (amount > 0)");
  world.set_for_database("plan_cache_mode = force_generic_plan");
  analyze_empty(world.url());
  for (const auto* setting :
       {"failures.circuit_breaker=0", "failures.max_attempts=1", "failures.retry_later=[\"1s\"]"})
    world.set(setting);
  world.set("failures.on_failure=" + policy);

  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  const bool retries = policy == "retry-later";
  const auto wait_for_round = [&](int accounts) {
    world.wait_until_all_processed();
    if (!retries)
      return;
    wait_until([&] { return unresolved(world, "status = 'dead' AND due_at IS NULL") == accounts; },
               60s, "messages whose retry failed");
  };
  send_round(world, 0);
  wait_for_round(10);

  world.execute(fill(world.topic()));
  const auto rows_read = [&] {
    return world.number(
        fmt::format("SELECT sum(seq_tup_read) FROM pg_stat_user_tables"
                    " WHERE schemaname = 'pawl' AND relname IN {}",
                    kGrowing));
  };
  const auto before = rows_read();
  send_round(world, 10);
  wait_for_round(20);
  stop_cleanly(*process);
  // A session tells what it has read at its end.
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                   " AND application_name LIKE 'pawl%'") == 0;
      },
      60s, "the end of the consumer's sessions");
  CHECK(rows_read() - before < kRows);
  CHECK(unresolved(world, "status = 'dead'") == 20);
}
