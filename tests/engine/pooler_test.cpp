#include <signal.h>

#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "pooler.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

using pawl::test::Pooler;

// In transaction pooling each transaction may meet another server process: fails with named
// prepared statements, with session settings, and with anything else that is kept between
// transactions.
TEST_CASE("through PgBouncer a killed consumer leaves balanced books and nothing in the sessions") {
  PaymentsWorld world(4);
  const std::string mode = GENERATE("session", "transaction");
  const bool code_handler = GENERATE(false, true);
  CAPTURE(mode, code_handler);
  const Pooler pooler(world, mode);
  if (code_handler)
    world.use_handler("name = \"payment\"");
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set_postgres_options("pooled = true");
  ProgramOptions options;
  options.url = pooler.url();
  world.produce(600);
  const auto survivor = world.start(options);
  const ShowOnFailure show_survivor("survivor", *survivor);
  options.arguments = {"--kill", "handler_returned:50"};
  const auto victim = world.start(options);
  const ShowOnFailure show_victim("victim", *victim);
  // Two processes share the partitions, so the second gets work as long as there is some.
  pawl::testing::wait_until(
      [&] {
        if (!victim->running())
          return true;
        world.produce(100);
        return false;
      },
      60s, "the victim to die");
  REQUIRE(victim->wait(1s).signal == SIGKILL);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(occurrences(*survivor, "EVENT database_disconnected") == 0);

  // What a stranger gets who is served by the same server processes.
  pqxx::connection stranger(pooler.url());
  pqxx::nontransaction tx(stranger);
  for (const auto* setting :
       {"lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"}) {
    CAPTURE(setting);
    REQUIRE(tx.exec(std::string("SHOW ") + setting).one_field().as<std::string>() == "0");
  }
  REQUIRE(tx.exec("SELECT count(*) FROM pg_prepared_statements").one_field().as<int>() == 0);
  stop_cleanly(*survivor);
}

// As after a failover to a standby that lacked the last commits; our connection is to the pooler.
TEST_CASE("through PgBouncer a register that goes back is noticed without another message") {
  PaymentsWorld world(2);
  const Pooler pooler(world, "transaction");
  world.set_postgres_options("pooled = true");
  world.set(std::string("consumer.durability=") + GENERATE("synchronous", "replayable"));
  ProgramOptions options;
  options.url = pooler.url();
  world.produce_to_each_partition(50);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  world.execute(
      "WITH lost AS ("
      "  DELETE FROM pawl.idempotency_keys WHERE kafka_offset > 9 RETURNING key"
      "), undone AS ("
      "  DELETE FROM ledger WHERE event_id IN (SELECT key FROM lost) RETURNING account, amount"
      "), accounts_before AS ("
      "  UPDATE accounts a SET balance = a.balance - u.amount, entries = a.entries - u.entries"
      "    FROM (SELECT account, sum(amount) AS amount, count(*) AS entries"
      "            FROM undone GROUP BY account) u"
      "   WHERE a.id = u.account"
      ") UPDATE pawl.processed_kafka_offsets"
      "     SET last_processed_offset = 9, applied_count = 10");
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(occurrences(*process, " to 10, so PostgreSQL has lost commits") == 2);
  REQUIRE(occurrences(*process, "EVENT database_disconnected") == 0);
  stop_cleanly(*process);
}

// No session lock tells who removes, and no session setting bounds it.
TEST_CASE("through PgBouncer retention removes keys as well") {
  PaymentsWorld world(2);
  const Pooler pooler(world, "transaction");
  world.set_postgres_options("pooled = true");
  ProgramOptions options;
  options.url = pooler.url();
  options.extra_config = "[retention]\nkeys = \"1s\"\ninterval = \"100ms\"\n";
  world.produce(100);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  pawl::testing::wait_until(
      [&] { return world.value("SELECT count(*) FROM pawl.idempotency_keys") == "0"; }, 60s,
      "the keys to go");
  stop_cleanly(*process);
  REQUIRE(world.value("SELECT holder FROM pawl.retention_state").empty());
}

TEST_CASE("a pooler is noticed when the configuration does not know of it") {
  PaymentsWorld world(2);
  const Pooler pooler(world, "session");
  ProgramOptions options;
  options.url = pooler.url();
  world.produce(100);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("postgres.pooled = true", 30s);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  stop_cleanly(*process);

  const auto direct = world.start();
  direct->wait_for_output("EVENT database_connected", 30s);
  stop_cleanly(*direct);
  REQUIRE(occurrences(*direct, "pooled") == 0);
}

TEST_CASE("a pooler that gives each transaction another session is named with what to set") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  pooler.prepare_nowhere_else();
  {
    // The only free server process has a statement of this name already.
    pqxx::connection other(pooler.url());
    pqxx::nontransaction(other).exec("PREPARE pawl_schema_limit AS SELECT 1");
  }
  ProgramOptions options;
  options.url = pooler.url();
  const auto process = world.start(options);
  CHECK_FALSE(process->wait(60s).success());
  CHECK(occurrences(*process, "Set postgres.pooled = true (docs/poolers.md)") == 1);
}

TEST_CASE("a pooler in statement mode is named with the mode to set") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "statement");
  world.set_postgres_options("pooled = true");
  ProgramOptions options;
  options.url = pooler.url();
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("Set pool_mode of the pooler to transaction", 60s);
  process->kill(SIGTERM);
  CHECK(process->wait(60s).success());
}

TEST_CASE("a consumer that waits for a paused PgBouncer stops on a signal") {
  PaymentsWorld world(1);
  const Pooler pooler(world, "transaction");
  world.set_postgres_options("pooled = true");
  ProgramOptions options;
  options.url = pooler.url();
  world.produce(10);
  const bool at_start = GENERATE(true, false);
  CAPTURE(at_start);
  if (at_start) {
    // PgBouncer knows the server by now, so that it lets clients in while it is paused.
    world.drain(options);
    pooler.command("PAUSE");
  }
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  if (!at_start) {
    world.wait_until_all_processed();
    pooler.command("PAUSE");
  }
  process->wait_for_output("EVENT database_unreachable", 120s);
  process->kill(SIGTERM);
  // A session gives up by itself: connecting after postgres.connect_timeout (5 s), its first
  // statements 15 s after they were sent (lock_timeout and 10 s). Only a process that ends well
  // before has heard the signal.
  CHECK(process->wait(10s).success());
  pooler.command("RESUME");
}
