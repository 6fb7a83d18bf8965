// Batches in which something fails: the culprit alone bears it, and its neighbours are applied once
// and in order.
#include <fmt/format.h>
#include <signal.h>

#include <pqxx/pqxx>

#include "batch_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "register_moves.hpp"

namespace {

/// Short delays.
std::string failures(const std::string& lines) {
  return "[failures]\nretry_initial = \"5ms\"\nretry_max = \"20ms\"\n" + lines;
}

void produce_poison(PaymentsWorld& world, const std::string& id, int partition = 0) {
  Record record;
  record.value = R"({"account":"acc-1","amount":5})";
  record.headers = {{"event-id", id}};
  record.partition = partition;
  world.produce_record(record);
}

void produce_around_poison(PaymentsWorld& world, int before, int after) {
  for (int i = 0; i < before; ++i)
    world.produce_one(fmt::format("before-{}", i), 1, 0);
  produce_poison(world, "poison-1");
  for (int i = 0; i < after; ++i)
    world.produce_one(fmt::format("after-{}", i), 1, 0);
}

}  // namespace

TEST_CASE("a poison message in the middle of a batch gets the policy alone") {
  PaymentsWorld world(1);
  note_order(world);
  const auto* policy = GENERATE("halt", "dead-letter", "skip");
  const auto* handler = GENERATE("batch_throws_on_poison", "batch_permanent_on_poison");
  CAPTURE(policy, handler);
  world.use_handler(fmt::format("name = \"{}\"", handler));
  produce_around_poison(world, 60, 40);
  const auto process = world.start(
      {{"--drain"}, failures(fmt::format("on_failure = \"{}\"\nmax_attempts = 3\n", policy))});
  const auto status = process->wait(60s);
  INFO(process->output());
  const bool halts = policy == std::string_view("halt");
  CHECK(status.code == (halts ? 4 : 0));
  CHECK(largest_batch(*process) > 10);
  CHECK(world.stored(0) == (halts ? 59 : 100));
  CHECK(world.number("SELECT count(*) FROM ledger") == (halts ? 60 : 100));
  CHECK(world.number("SELECT sum(entries) FROM accounts") == (halts ? 60 : 100));
  CHECK(out_of_order(world) == 0);
  CHECK(world.in_register(0, "applied_count || ' ' || dead_count || ' ' || skipped_count") ==
        (halts                                ? "60 0 0"
         : policy == std::string_view("skip") ? "100 0 1"
                                              : "100 1 0"));
  if (halts) {
    CHECK(world.in_register(0, "halt_kind") == "message");
    CHECK(world.in_register(0, "halt_offset || ' ' || (halt_parameters ->> 'idempotency_key')") ==
          "60 poison-1");
  }
  if (policy == std::string_view("dead-letter"))
    CHECK(
        world.value("SELECT idempotency_key || ' ' || attempts FROM pawl.dead_letters") ==
        fmt::format("poison-1 {}", handler == std::string_view("batch_throws_on_poison") ? 3 : 1));
}

TEST_CASE("poison in SQL is found too, wherever it stands, and however much there is") {
  PaymentsWorld world(2);
  note_order(world);
  world.execute("ALTER TABLE ledger ADD CHECK (event_id NOT LIKE 'poison%')");
  world.use_handler(kBatchSql);
  int good = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 0 || i == 150 || i == 151 || i == 220 || i == 299) {
      produce_poison(world, fmt::format("poison-{}", i));
    } else {
      world.produce_one(fmt::format("good-{}", i), 1, 0);
      ++good;
    }
    world.produce_one(fmt::format("beside-{}", i), 1, 1);
  }
  world.drain({{}, failures("on_failure = \"dead-letter\"\nmax_attempts = 1\n")});
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 5);
  CHECK(world.number("SELECT count(*) FROM ledger") == good + 300);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == good + 300);
  CHECK(out_of_order(world) == 0);
  CHECK(world.processed() == 600);
}

TEST_CASE("a table that is missing halts the program's partitions, and nothing is set aside") {
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  world.execute("ALTER TABLE ledger RENAME TO elsewhere");
  world.produce(50);
  const auto process = world.start(
      {{},
       failures(
           "on_failure = \"dead-letter\"\nmax_attempts = 1\nprogram_error_retry = \"50ms\"\n")});
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.in_register(0, "halt_kind") == "program");
  world.execute("ALTER TABLE elsewhere RENAME TO ledger");
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  // And nothing of it is held against the size of batches.
  CHECK(occurrences(*process, "BATCH 32 of 0 at 1") == 1);
  stop_cleanly(*process);
}

TEST_CASE("code that commits by itself halts at once, and its batch is not tried again") {
  PaymentsWorld world(1);
  world.use_handler("name = \"batch_commits\"");
  world.produce_to_each_partition(20);
  const auto process =
      world.start({{"--drain"}, failures("on_failure = \"dead-letter\"\nmax_attempts = 3\n")});
  CHECK(process->wait(60s).code == 4);
  INFO(process->output());
  CHECK(world.stored(0) == -1);
  CHECK(world.in_register(0, "halt_code") == "transaction_ended");
  CHECK_THAT(process->output(), ContainsSubstring("Check what the handler may have stored"));
}

// Code may throw anything, and its key functions run before the message is in hand.
TEST_CASE("a key function that throws what is no exception fails its own message") {
  PaymentsWorld world(1);
  const auto* handler = GENERATE("batch_odd", "odd");
  CAPTURE(handler);
  world.use_handler(
      fmt::format("name = \"{}\"\non_failure = \"dead-letter\"\nmax_attempts = 2", handler));
  for (const auto* id : {"a", "b", "poison", "c"})
    produce_poison(world, id);
  produce_poison(world, "a");  // on_duplicate throws as well
  const auto process = world.start({{"--drain"}, failures("")});
  CHECK(process->wait(60s).code == 0);
  INFO(process->output());
  CHECK(world.value("SELECT string_agg(kafka_offset || ' ' || handler || ' ' || attempts, ', ')"
                    "  FROM pawl.dead_letters") == fmt::format("2 {} 2", handler));
  CHECK(world.value("SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM ledger") == "a b c");
  CHECK(world.in_register(0, "applied_count || ' ' || duplicate_count || ' ' || dead_count") ==
        "3 1 1");
  CHECK(occurrences(*process, fmt::format("on_duplicate of handler {} threw", handler)) == 1);
}

// By itself the partition would stand for ever. The limit is the handler's, twice, and a grace.
TEST_CASE("code that never returns ends the process, so that another can go on") {
  PaymentsWorld world(1);
  world.use_handler("name = \"batch_odd\"\ntimeout = \"100ms\"");
  world.set_postgres_options("lock_timeout = \"100ms\"");
  produce_poison(world, "a");
  produce_poison(world, "poison that hangs");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  CHECK(process->wait(180s).code == 6);
  CHECK(occurrences(*process, "has not returned for") == 1);
}

TEST_CASE("a process killed at any step of a batch leaves balanced books") {
  PaymentsWorld world(4);
  world.set_kafka_options("session_timeout = \"1s\"");
  world.use_handler(GENERATE(kBatchSql, kBatchCode));
  const RegisterMoves moves(world);
  // Small, so that what runs alone after each death leaves something for batches.
  // The first messages are hit again and again, alone.
  const std::string config = "[batch]\nmax_messages = 20\n[failures]\nmax_crashes = 100\n";
  int in_batches = 0;
  int kills = 0;
  for (const int nth : {1, 100, 120}) {
    for (const auto* step :
         {"message_fetched", "key_claimed", "handler_returned", "offset_advancing", "commit_sent",
          "message_committed", "message_deduplicated"}) {
      world.produce(800);
      const bool of_messages = step == std::string_view("message_committed");
      const bool rare = step == std::string_view("message_deduplicated");
      const int at = rare ? 2 : of_messages ? nth * 3 : nth;
      const auto before = world.processed();
      const auto process = world.start({{"--kill", fmt::format("{}:{}", step, at)}, config});
      const auto status = process->wait(60s);
      INFO(step << " " << at << "\n" << process->output());
      REQUIRE(status.signal == SIGKILL);
      ++kills;
      in_batches += world.processed() - before > (of_messages ? 3 * nth : nth) ? 1 : 0;
    }
  }
  world.drain({{}, config});
  CHECK(world.imbalance() == "");
  CHECK(moves.violations() == "");
  CHECK(kills == 21);
  // More messages behind than steps were seen: they went in batches.
  CHECK(in_batches > 6);
}

TEST_CASE("an owner that is fenced inside a batch changes nothing") {
  PaymentsWorld world(2);
  const RegisterMoves moves(world);
  world.use_handler(kBatchSql);
  // Another one might be stopped with the register's row locked, and nobody could change it.
  world.set("consumer.workers=1");
  const auto* step = GENERATE("message_fetched", "key_claimed", "handler_returned");
  CAPTURE(step);
  world.produce(1000);
  const auto process = world.start({{"--freeze", fmt::format("{}:2", step)}});
  const ShowOnFailure show("consumer", *process);
  wait_until_stopped(*process, 60s);
  // What `pawl partitions resume` does to a row that is not halted: a new epoch and nothing else.
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', 'x')"
      "  FROM pawl.processed_kafka_offsets");
  process->kill(SIGCONT);
  process->wait_for_output("EVENT partition_fenced", 60s);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  CHECK(moves.violations() == "");
  stop_cleanly(*process);
}

TEST_CASE(
    "an owner stopped inside a batch loses its partitions and changes nothing when it wakes") {
  PaymentsWorld world(4);
  const RegisterMoves moves(world);
  world.use_handler(kBatchSql);
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set_postgres_options("stalled_owner_after = \"1s\"\nlock_timeout = \"2s\"");
  const auto* step = GENERATE("handler_returned", "offset_advancing", "commit_sent");
  CAPTURE(step);
  const std::string config = "[batch]\nmax_messages = 50\n";
  world.produce(1000);
  const auto zombie = world.start({{"--freeze", fmt::format("{}:3", step)}, config});
  const ShowOnFailure show_zombie("zombie", *zombie);
  wait_until_stopped(*zombie, 60s);
  const auto heir = world.start({{}, config});
  const ShowOnFailure show_heir("heir", *heir);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  zombie->kill(SIGCONT);
  zombie->wait_for_output("EVENT partition_revoked", 60s);
  world.produce(500);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  CHECK(moves.violations() == "");
  stop_cleanly(*zombie);
  stop_cleanly(*heir);
}

// Two batches that hold what the other one wants: without halving, both would meet again and again.
TEST_CASE("a deadlock between batches of two partitions makes the victim's batches smaller") {
  PaymentsWorld world(2);
  // Accounts are changed in the messages' order; nothing sorts them.
  world.use_handler(kBatchCode);
  const auto pay = [&](const char* account, int number, int partition) {
    Record record;
    record.value = fmt::format(R"({{"account":"{}","amount":1}})", account);
    record.headers = {{"event-id", fmt::format("{}-{}", partition, number)}};
    record.partition = partition;
    world.produce_record(record);
  };
  int number = 0;
  for (const auto* account : {"acc-1", "acc-0", "acc-2"})
    pay(account, number++, 0);
  for (const auto* account : {"acc-2", "acc-0", "acc-1"})
    pay(account, number++, 1);
  pqxx::connection connection(world.url());
  pqxx::work gate(connection);
  gate.exec("SELECT FROM accounts WHERE id = 'acc-0' FOR UPDATE");
  const auto process = world.start({{}, "[batch]\nmax_messages = 3\nlinger = \"1m\"\n"});
  const ShowOnFailure show("consumer", *process);
  // Each holds its first account and waits for the second one.
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                   "datname = current_database()") == 2;
      },
      60s, "both batches to wait");
  gate.commit();
  process->wait_for_output("deadlock detected", 60s);
  world.wait_until_all_processed();
  CHECK(occurrences(*process, "BATCH 3") == 2);
  CHECK(occurrences(*process, "deadlock detected") == 1);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == 6);
  CHECK(world.number("SELECT count(*) FROM ledger") == 6);
  stop_cleanly(*process);
}

TEST_CASE("a batch that waits for a lock too long is halved, down to what need not wait") {
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  world.set_postgres_options("lock_timeout = \"100ms\"");
  for (int i = 0; i < 64; ++i) {
    Record record;
    record.value = fmt::format(R"({{"account":"acc-{}","amount":1}})", i == 40 ? 9 : 1);
    record.headers = {{"event-id", fmt::format("x-{}", i)}};
    record.partition = 0;
    world.produce_record(record);
  }
  pqxx::connection connection(world.url());
  pqxx::work gate(connection);
  gate.exec("SELECT FROM accounts WHERE id = 'acc-9' FOR UPDATE");
  // The first batch waits until it is full: how much of a log comes first is the broker's choice.
  const auto process = world.start({{}, "[batch]\nmax_messages = 32\nlinger = \"30s\"\n"});
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 39);
  process->wait_for_output("EVENT attempt_failed " + world.topic() + " 0 40 ERROR:  canceling",
                           60s);
  gate.commit();
  world.wait_for_stored(0, 63);
  CHECK(occurrences(*process,
                    "in a batch of 32: ERROR:  canceling statement due to lock timeout") == 1);
  CHECK(occurrences(*process,
                    "in a batch of 16: ERROR:  canceling statement due to lock timeout") <= 1);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == 64);
  CHECK(world.in_register(0, "attempts") == "0");
  stop_cleanly(*process);
}

TEST_CASE("a connection that breaks inside a batch lets its messages run alone") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.use_handler(kBatchCode);
  world.produce(300);
  const auto* step = GENERATE("handler_returned", "offset_advancing", "commit_sent");
  CAPTURE(step);
  const auto process = world.start({{"--freeze", fmt::format("{}:1", step)}});
  const ShowOnFailure show("consumer", *process);
  wait_until_stopped(*process, 60s);
  server.stop(pawl::testing::StopMode::kImmediate);
  server.start();
  process->kill(SIGCONT);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  stop_cleanly(*process);
}

TEST_CASE("SQL that crashes its server process is attributed to its message") {
  PostgresServer server;
  PaymentsWorld world(2, &server);
  world.create_crash_on_poison();
  world.use_handler(R"toml(batch = true
sql = [
  "SELECT crash_on_poison(id) FROM unnest({header:event-id}::text[]) AS u (id)",
  "INSERT INTO ledger SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], {/amount}::bigint[])",
])toml");
  for (int i = 0; i < 10; ++i)
    world.produce_one(fmt::format("before-{}", i), 5, 0);
  world.produce_one("poison", 6, 0);
  for (int i = 0; i < 10; ++i)
    world.produce_one(fmt::format("after-{}", i), 5, 0);
  for (int i = 0; i < 30; ++i)
    world.produce_one(fmt::format("beside-{}", i), 1, 1);
  const auto process =
      world.start({{}, failures("on_failure = \"dead-letter\"\nmax_attempts = 2\n")});
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed(180s);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason || ' ' || attempts, ', ') "
                    "FROM pawl.dead_letters") == "poison error 2");
  CHECK(world.number("SELECT count(*) FROM ledger") == 50);
  stop_cleanly(*process);
}

// All messages of the batch were in hand, so all of them are on probation, each alone.
TEST_CASE("a message that kills its process in a batch is set aside, and no other") {
  PaymentsWorld world(3);
  world.use_handler("name = \"batch_segfaults_on_poison\"");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 3; ++partition) {
    for (int i = 0; i < 30; ++i)
      world.produce_one(fmt::format("{}-{}", partition, i), 3, partition);
  }
  produce_poison(world, "poison-1", 1);
  for (int i = 30; i < 60; ++i)
    world.produce_one(fmt::format("1-{}", i), 3, 1);
  const ProgramOptions program{
      {"--drain"},
      "[failures]\non_failure = \"dead-letter\"\nmax_crashes = 3\n[batch]\nmax_messages = 40\n"};
  int crashes = 0;
  while (true) {
    const auto process = world.start(program);
    const auto status = process->wait(120s);
    INFO(process->output());
    if (!status.signal) {
      CHECK(status.code == 0);
      break;
    }
    REQUIRE(status.signal == SIGSEGV);
    REQUIRE(++crashes < 20);
  }
  // The first one only opens the probation.
  CHECK(crashes == 4);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ') FROM "
                    "pawl.dead_letters") == "poison-1 crash");
  CHECK(world.processed() == world.produced());
  CHECK(world.number("SELECT count(*) FROM ledger") == 120);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == 120);
  CHECK(world.number("SELECT count(*) FROM pawl.suspects") == 0);
}

TEST_CASE(
    "after a death all that may have been in hand runs alone, and what is behind it does not") {
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  const std::string config = "[batch]\nmax_messages = 20\n";
  world.produce_to_each_partition(100);
  const auto killed = world.start({{"--kill", "handler_returned:2"}, config});
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  const auto stored = world.stored(0);
  REQUIRE(stored);
  const auto process = world.start({{"--drain"}, config});
  REQUIRE(process->wait(60s).success());
  INFO(process->output());
  CHECK(occurrences(*process, "BATCH 1 of 0") == 20);
  CHECK(occurrences(*process, fmt::format("BATCH 20 of 0 at {}", *stored + 21)) == 1);
  CHECK(world.in_register(0, "released") == "t");
  CHECK(world.imbalance() == "");
}
