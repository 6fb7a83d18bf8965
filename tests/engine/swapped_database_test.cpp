// What a pooler keeps while the database behind it becomes another one: one that lost its last
// commits, or one of somebody else's.
#include <fmt/format.h>

#include <fstream>
#include <pqxx/pqxx>

#include "ordered_accounts.hpp"
#include "pooler.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

using pawl::test::Pooler;
using pawl::test::SwappedDatabases;

namespace {

constexpr int kAccounts = 8;

ProgramOptions through(const Pooler& pooler) {
  ProgramOptions options;
  options.url = pooler.url();
  return options;
}

void produce_each(PaymentsWorld& world, int first, int last) {
  for (int i = 0; i < kAccounts; ++i)
    produce(world, fmt::format("acc-{}", i), first, last);
}

}  // namespace

// Fails where a completion compares the epoch alone, which the copy has as well: later messages of
// an account take effect before those that were lost.
TEST_CASE("behind a database that went back, no message of a key overtakes a lost one") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  prepare_accounts(world);
  world.use_handler(fmt::format("concurrency = 4\n{}", pawl::test::kInOrder));
  world.set_postgres_options("pooled = true");
  SwappedDatabases databases(pooler, world);
  const auto process = world.start(through(pooler));
  const ShowOnFailure show("consumer", *process);
  produce_each(world, 1, 5);
  world.wait_until_processed(5 * kAccounts);
  databases.copy();
  produce_each(world, 6, 10);
  world.wait_until_processed(10 * kAccounts);
  databases.swap();
  produce_each(world, 11, 11);
  world.wait_until_processed(11 * kAccounts);
  for (int i = 0; i < kAccounts; ++i)
    CHECK(order_of(world, fmt::format("acc-{}", i)) == "1,2,3,4,5,6,7,8,9,10,11");
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys") == 11 * kAccounts);
  stop_cleanly(*process);
}

// Fails where a completion compares only the stored offset, which does not move while an earlier
// message is tried again: what was lost above it is overtaken.
TEST_CASE("no message overtakes a lost one while the stored offset waits") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  prepare_accounts(world);
  world.use_handler(fmt::format("concurrency = 4\n{}", pawl::test::kInOrder));
  world.set_postgres_options("pooled = true");
  world.set("failures.retry_max=500ms");
  // Else it depends on the machine whether the message halts before the databases are swapped.
  world.set("failures.retry_for=10m");
  world.execute("INSERT INTO closed VALUES ('waits')");
  SwappedDatabases databases(pooler, world);
  const auto process = world.start(through(pooler));
  const ShowOnFailure show("consumer", *process);
  const auto wait_for = [&](int last) {
    wait_until(
        [&] {
          return world.number("SELECT coalesce(max(number), 0) FROM ordered WHERE account = 'a'") ==
                 last;
        },
        60s, fmt::format("message {} of the account", last));
  };
  produce(world, "waits", 1, 1);
  produce(world, "a", 1, 3);
  wait_for(3);
  databases.copy();
  produce(world, "a", 4, 6);
  wait_for(6);
  databases.swap();
  produce(world, "a", 7, 8);
  wait_for(8);
  world.execute("DELETE FROM closed");
  world.wait_until_processed(9);
  CHECK(order_of(world, "a") == "1,2,3,4,5,6,7,8");
  CHECK(order_of(world, "waits") == "1");
  stop_cleanly(*process);
}

// Fails where the number of a scope outlives the database that gave it: keys are stored under a
// number that another scope has here (false duplicates, effects are missing), or that no scope has
// (the producer's repeats take effect again).
TEST_CASE("behind a database that went back, keys are in the scope of that database") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  const std::string handler = GENERATE("", "concurrency = 2\n", "batch = true\n");
  const std::string pipeline = GENERATE("1", "16");
  if (!handler.empty() && pipeline != "1")
    return;
  CAPTURE(handler, pipeline);
  world.execute("CREATE TABLE seen (id text)");
  world.use_handler(
      handler +
      (handler.starts_with("batch")
           ? "sql = \"INSERT INTO seen SELECT i FROM unnest({header:event-id}::text[]) AS u (i)\""
           : "sql = \"INSERT INTO seen VALUES ({header:event-id})\""));
  world.set("consumer.pipeline=" + pipeline);
  world.set_postgres_options("pooled = true");
  SwappedDatabases databases(pooler, world);
  const auto process = world.start(through(pooler));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "running");
  databases.copy();
  // Younger than the copy is the scope, too.
  for (int i = 0; i < 10; ++i)
    world.produce_one(fmt::format("id-{}", i), 1, 0);
  world.wait_for_stored(0, 9);
  const auto number = world.value("SELECT scope_id FROM pawl.idempotency_scopes");
  {
    // Another scope has its number there, with the same keys. Before the swap: behind it the
    // process may be the first to take the number.
    pqxx::connection other(databases.other_url(world));
    pqxx::nontransaction(other).exec(
        "INSERT INTO pawl.idempotency_scopes (name) VALUES ('of another');"
        "INSERT INTO pawl.idempotency_keys (scope_id, key, payload_hash, source_id, partition, "
        "kafka_offset) SELECT scope_id, 'id-' || n, 0, 1, 0, n FROM pawl.idempotency_scopes, "
        "generate_series(0, 19) AS n");
    REQUIRE(pqxx::nontransaction(other).query_value<std::string>(
                "SELECT scope_id FROM pawl.idempotency_scopes WHERE name = 'of another'") ==
            number);
  }
  databases.swap();
  for (int i = 10; i < 20; ++i)
    world.produce_one(fmt::format("id-{}", i), 1, 0);
  world.wait_for_stored(0, 19);
  // The producer repeats itself.
  for (int i = 0; i < 20; ++i)
    world.produce_one(fmt::format("id-{}", i), 1, 0);
  world.wait_for_stored(0, 39);
  CHECK(world.value("SELECT count(*) || ' ' || count(DISTINCT id) FROM seen") == "20 20");
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys JOIN pawl.idempotency_scopes "
                     "USING (scope_id) WHERE name <> 'of another'") == 20);
  stop_cleanly(*process);
}

// Fails where the number of the consumer alone says whose row it is.
TEST_CASE("another database behind the pooler is left alone, and ours goes on once it is back") {
  const std::string handler = GENERATE("", "concurrency = 2\n");
  CAPTURE(handler);
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  world.execute("CREATE TABLE seen (id text)");
  world.use_handler(handler + "sql = \"INSERT INTO seen VALUES ({header:event-id})\"");
  world.set_postgres_options("pooled = true");
  SwappedDatabases databases(pooler, world);
  const auto process = world.start(through(pooler));
  const ShowOnFailure show("consumer", *process);
  world.produce_one("before", 1, 0);
  world.wait_for_stored(0, 0);
  databases.copy();
  {
    // As staging is: the same tables and topic, and its consumer has our consumer's number.
    pqxx::connection other(databases.other_url(world));
    pqxx::nontransaction(other).exec(
        "UPDATE pawl.database_identity SET database_id = gen_random_uuid();"
        "UPDATE pawl.consumers SET group_id = 'staging'; TRUNCATE seen");
  }
  databases.swap();
  const auto state =
      "SELECT owner_epoch || ' ' || last_processed_offset || ' ' || released FROM "
      "pawl.processed_kafka_offsets";
  const auto theirs = world.value(state);
  world.produce_one("while it is away", 1, 0);
  process->wait_for_output("EVENT warning", 60s);
  process->wait_for_output("postgres.url leads to another database", 60s);
  CHECK(world.value(state) == theirs);
  CHECK(world.number("SELECT count(*) FROM seen") == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.processes") == 1);
  databases.swap();
  world.wait_for_stored(0, 1);
  CHECK(world.value("SELECT string_agg(id, ', ' ORDER BY id) FROM seen") ==
        "before, while it is away");
  stop_cleanly(*process);
}

// Fails where a replay does not compare the database: the letters behind the swap take effect in
// the other one.
TEST_CASE("a replay does not go on in another database behind the pooler") {
  constexpr int kLetters = 40;
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  world.execute("CREATE TABLE seen (id text CONSTRAINT nothing CHECK (id = ''))");
  world.use_handler(
      "on_failure = \"dead-letter\"\n"
      "sql = [\"INSERT INTO seen VALUES ({header:event-id})\", \"SELECT pg_sleep(0.1)\"]");
  world.set_postgres_options("pooled = true");
  for (int i = 0; i < kLetters; ++i)
    world.produce_one(fmt::format("id-{}", i), 1, 0);
  ProgramOptions options = through(pooler);
  options.extra_config = "[failures]\nretry_for = \"0s\"\ncircuit_breaker = 0\n";
  world.drain(options);
  REQUIRE(world.number("SELECT count(*) FROM pawl.dead_letters") == kLetters);
  world.execute("ALTER TABLE seen DROP CONSTRAINT nothing");
  SwappedDatabases databases(pooler, world);
  databases.copy();
  const auto ours = databases.other_url(world);
  {
    pqxx::connection other(ours);
    pqxx::nontransaction(other).exec(
        "UPDATE pawl.database_identity SET database_id = gen_random_uuid()");
  }
  const pawl::testing::TempDir folder("replay");
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config("", pooler.url());
  ChildProcess replay(PAWL_PROGRAM, {"dlq", "replay", "--all", "--config", config.string()},
                      {.output = folder.path() / "output"});
  const ShowOnFailure show("replay", replay);
  wait_until([&] { return world.number("SELECT count(*) FROM seen") >= 3; }, 60s,
             "some letters to be replayed");
  databases.swap();
  CHECK_FALSE(replay.wait(120s).success());
  CHECK(world.number("SELECT count(*) FROM seen") == 0);
  pqxx::connection back(ours);
  pqxx::nontransaction look(back);
  CHECK(
      look.query_value<bool>("SELECT (SELECT count(*) FROM seen) = count(*) AND count(*) < 40 "
                             "FROM pawl.dead_letters WHERE status = 'replayed'"));
}
