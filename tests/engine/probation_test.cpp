#include <fmt/format.h>

#include <csignal>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

ProgramOptions program(const std::string& policy, const std::vector<std::string>& arguments = {}) {
  ProgramOptions options;
  // One message in hand, with its steps.
  options.arguments = {"--set", "consumer.pipeline=1"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.extra_config =
      fmt::format("[failures]\non_failure = \"{}\"\nmax_crashes = 3\nmax_attempts = 3\n", policy);
  return options;
}

void produce_poison(PaymentsWorld& world, const std::string& id, int partition) {
  Record record;
  record.value = R"({"account":"acc-1","amount":5})";
  record.headers = {{"event-id", id}};
  record.partition = partition;
  world.produce_record(record);
}

/// Starts the program again as a supervisor does, until it ends by itself; how often it crashed.
int run_until_it_survives(PaymentsWorld& world, const ProgramOptions& options, int expected_code) {
  for (int crashes = 0;; ++crashes) {
    const auto process = world.start(options);
    const auto status = process->wait(120s);
    INFO(process->output());
    if (!status.signal) {
      REQUIRE(status.code == expected_code);
      return crashes;
    }
    REQUIRE(status.signal == SIGSEGV);
    REQUIRE(crashes < 20);
  }
}

}  // namespace

// Without probation such a message stops the whole group for ever, and with a mere count of
// restarts the innocent messages beside it would be condemned as well.
TEST_CASE("a message that kills its process is set aside, and no other") {
  PaymentsWorld world(8);
  // The code of statements runs while a flight is filled.
  const bool flights = GENERATE(false, true);
  CAPTURE(flights);
  world.use_handler(fmt::format("name = \"{}\"",
                                flights ? "statements_segfault_on_poison" : "segfaults_on_poison"));
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 6; ++partition) {
    for (int i = 0; i < 20; ++i)
      world.produce_one(fmt::format("{}-{}", partition, i), 3, partition);
  }
  // Behind the others' first messages, so that these are in hand when it strikes. Partitions 6 and
  // 7 stay empty: idle ones have nothing in hand.
  produce_poison(world, "poison-1", 3);
  for (int i = 20; i < 40; ++i)
    world.produce_one(fmt::format("3-{}", i), 3, 3);

  // The first crash only opens the probation.
  const auto in_hand = fmt::format("consumer.pipeline={}", flights ? 64 : 1);
  CHECK(run_until_it_survives(world, program("dead-letter", {"--drain", "--set", in_hand}), 0) ==
        4);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ') FROM "
                    "pawl.dead_letters") == "poison-1 crash");
  CHECK(world.processed() == world.produced());
  CHECK(world.number("SELECT count(*) FROM ledger") == 140);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == 140);
  CHECK(world.number("SELECT count(*) FROM pawl.suspects") == 0);
}

TEST_CASE("two messages that kill their process are each found") {
  PaymentsWorld world(4);
  world.use_handler("name = \"segfaults_on_poison\"");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 4; ++partition) {
    produce_poison(world, fmt::format("{}-{}", partition < 2 ? "poison" : "good", partition),
                   partition);
    world.produce_one(fmt::format("after-{}", partition), 3, partition);
  }
  run_until_it_survives(world, program("dead-letter", {"--drain"}), 0);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ' ORDER BY partition) "
                    "FROM pawl.dead_letters") == "poison-0 crash, poison-1 crash");
  CHECK(world.number("SELECT count(*) FROM ledger") == 6);
}

TEST_CASE("halted for its crashes, a message runs again only when an operator says so") {
  PaymentsWorld world(2);
  world.use_handler("name = \"segfaults_on_poison\"");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  produce_poison(world, "poison-1", 0);
  world.produce_one("other", 3, 1);
  CHECK(run_until_it_survives(world, program("halt", {"--drain"}), 4) == 4);
  CHECK(world.in_register(0, "halt_kind") == "crash");
  CHECK(world.in_register(0, "state_reason").find("3 processes ended") != std::string::npos);
  CHECK(world.stored(1) == 0);
  // A restart meets the stored halt and leaves it.
  CHECK(run_until_it_survives(world, program("halt", {"--drain"}), 4) == 0);

  world.use_handler("name = \"payment\"");
  const auto process = world.start(program("halt"));
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT halted", 60s);
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', 'x')"
      "  FROM pawl.processed_kafka_offsets WHERE partition = 0");
  world.wait_for_stored(0, 0);
  CHECK(world.number("SELECT count(*) FROM ledger") == 2);
  stop_cleanly(*process);
}

TEST_CASE("deploys by kill -9 in a row condemn nobody") {
  PaymentsWorld world(8);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(1200);
  for (int deploy = 0; deploy < 10; ++deploy) {
    // Behind what is on probation: a kill that hits the same message each time would be a crash.
    const auto process =
        world.start(program("dead-letter", {"--kill", fmt::format("handled:{}", 30 + 7 * deploy)}));
    REQUIRE(process->wait(120s).signal == SIGKILL);
  }
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  world.drain(program("dead-letter"));
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(world.imbalance() == "");
}

// The mark stands while the database is away; the process that set it has not ended.
TEST_CASE("an outage of the database while a suspect runs is no crash") {
  PostgresServer server;
  PaymentsWorld world(2, &server);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(40);
  const auto killed = world.start(program("dead-letter", {"--kill", "handled:3"}));
  REQUIRE(killed->wait(120s).signal == SIGKILL);
  const auto process = world.start(program("dead-letter", {"--freeze", "handled:1"}));
  const ShowOnFailure show("consumer", *process);
  wait_until_stopped(*process, 60s);
  CHECK(world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by IS NOT NULL") == 1);
  server.stop(pawl::testing::StopMode::kImmediate);
  server.start();
  process->kill(SIGCONT);
  world.wait_until_all_processed();
  CHECK(occurrences(*process, "EVENT probation ") == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}

// Two processes that are both alive take the partition from each other: marks of the living.
TEST_CASE("a mark whose session still lives is no crash") {
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(10);
  const auto killed = world.start(program("dead-letter", {"--kill", "handled:1"}));
  REQUIRE(killed->wait(120s).signal == SIGKILL);
  const auto stopped = world.start(program("dead-letter", {"--freeze", "fetched:1"}));
  const ShowOnFailure show("stopped", *stopped);
  wait_until_stopped(*stopped, 60s);
  const auto heir = world.start(program("dead-letter"));
  world.wait_until_all_processed();
  CHECK(occurrences(*heir, "EVENT probation ") == 0);
  stopped->kill(SIGCONT);
  stop_cleanly(*heir);
  stop_cleanly(*stopped);
  CHECK(world.imbalance() == "");
}

TEST_CASE(
    "a suspect that is set aside for its broken connections leaves the others of its number") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.create_crash_on_poison();
  world.use_handler(kCrashOnPoisonSql);
  world.execute("CREATE TABLE marks (kafka_offset bigint)");
  world.execute(R"sql(
      CREATE FUNCTION note_mark() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
          INSERT INTO marks VALUES (NEW.kafka_offset);
          RETURN NEW;
      END $$)sql");
  world.produce_one("poison", 6, 0);
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("after-{}", i), 1, 0);
  // One message was in hand when it ended.
  const auto killed = world.start(program("dead-letter", {"--kill", "claimed:1"}));
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  world.execute(
      "CREATE TRIGGER note_mark AFTER INSERT OR UPDATE ON pawl.suspects FOR EACH ROW EXECUTE "
      "FUNCTION note_mark()");
  world.drain(program("dead-letter"));
  CHECK(world.value("SELECT string_agg(idempotency_key, ', ') FROM pawl.dead_letters") == "poison");
  CHECK(world.number("SELECT count(*) FROM ledger") == 5);
  CHECK(world.value("SELECT string_agg(DISTINCT kafka_offset::text, ' ') FROM marks") == "0");
}
