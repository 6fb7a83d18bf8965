#include <fmt/format.h>

#include <csignal>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// A second attempt would outlast every deadline.
constexpr const char* kNeverAgain =
    "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 1000\nretry_initial = \"1h\"\n"
    "retry_max = \"2h\"\n";

/// [failures], with short delays.
std::string failures(const std::string& lines) {
  return "[failures]\nretry_initial = \"5ms\"\nretry_max = \"20ms\"\nprogram_error_retry = "
         "\"100ms\"\n" +
         lines;
}

void drain(PaymentsWorld& world, const std::string& config) {
  ProgramOptions options;
  options.extra_config = config;
  world.drain(options);
}

std::string letter(const PaymentsWorld& world, const std::string& column) {
  return world.value(fmt::format("SELECT {} FROM pawl.dead_letters", column));
}

std::int64_t letters(const PaymentsWorld& world, const std::string& where = "true") {
  return world.number(fmt::format("SELECT count(*) FROM pawl.dead_letters WHERE {}", where));
}

Record poison(const std::string& id, int partition) {
  Record record;
  record.key = "k\0\xff"s;
  record.value = "{\"account\":\"acc-1\",\"amount\":5,\"x\":\"\xc3\xa4\"}";
  record.headers = {{"event-id", id}, {"none", std::nullopt}, {"bytes", "\0\xfe"s}};
  record.partition = partition;
  return record;
}

}  // namespace

TEST_CASE("a dead letter is the whole message, and its partition goes on") {
  PaymentsWorld world(2);
  world.use_handler("name = \"throws_on_poison\"");
  world.produce_one("before", 5, 0);
  world.produce_record(poison("poison-1", 0));
  world.produce_one("after", 7, 0);
  drain(world, failures("on_failure = \"dead-letter\"\nmax_attempts = 3\n"));

  CHECK(world.stored(0) == 2);
  CHECK(world.value("SELECT string_agg(event_id, ',' ORDER BY event_id) FROM ledger") ==
        "after,before");
  CHECK(world.in_register(0, "dead_count") == "1");
  CHECK(world.in_register(0, "applied_count") == "2");
  CHECK(world.in_register(0, "state") == "running");
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys WHERE key = 'poison-1'") == 0);
  REQUIRE(letters(world) == 1);
  CHECK(letter(world, "topic || ' ' || partition || ' ' || kafka_offset") ==
        world.topic() + " 0 1");
  CHECK(letter(world, "status || ' ' || reason || ' ' || payload") == "dead error complete");
  CHECK(letter(world, "handler") == "throws_on_poison");
  CHECK(letter(world, "idempotency_key") == "poison-1");
  CHECK(letter(world, "error") == "poisoned");
  CHECK(letter(world, "attempts") == "3");
  CHECK(letter(world, "encode(record_key, 'hex')") == "6b00ff");
  CHECK(letter(world, "convert_from(record_value, 'UTF8')") ==
        "{\"account\":\"acc-1\",\"amount\":5,\"x\":\"\xc3\xa4\"}");
  CHECK(letter(world, "headers->0->>'name'") == "event-id");
  CHECK(letter(world, "headers->1->>'value'").empty());
  CHECK(letter(world, "encode(decode(headers->2->>'value', 'base64'), 'hex')") == "00fe");
}

TEST_CASE("what PostgreSQL said of rows is kept with the dead letter only") {
  PaymentsWorld world(1);
  world.execute("INSERT INTO ledger VALUES ('e-1', 'acc-1', 5)");
  world.produce_one("e-1", 5, 0);
  ProgramOptions options;
  options.arguments = {"--drain"};
  options.extra_config = failures("on_failure = \"dead-letter\"\nmax_attempts = 1\n");
  const auto process = world.start(options);
  REQUIRE(process->wait(90s).code == 0);
  CHECK(letter(world, "sqlstate") == "23505");
  CHECK(letter(world, "error").find("already exists") == std::string::npos);
  CHECK(letter(world, "error_detail").find("(event_id)=(e-1) already exists") != std::string::npos);
  CHECK(process->output().find("already exists") == std::string::npos);
}

TEST_CASE("skip leaves the message out and records it whole") {
  PaymentsWorld world(1);
  world.use_handler("name = \"throws_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  world.produce_one("after", 7, 0);
  drain(world, failures("on_failure = \"skip\"\nmax_attempts = 2\n"));
  CHECK(world.stored(0) == 1);
  CHECK(letters(world) == 0);
  CHECK(world.in_register(0, "skipped_count") == "1");
  CHECK(world.value("SELECT reason || ' ' || encode(record_key, 'hex') FROM "
                    "pawl.skipped_messages") == "poisoned 6b00ff");
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
}

TEST_CASE("a handler's own policy goes before that of [failures]") {
  PaymentsWorld world(1);
  world.use_handler(
      "name = \"throws_on_poison\"\non_failure = \"dead-letter\"\nmax_attempts = 2\n");
  world.produce_record(poison("poison-1", 0));
  world.produce_one("after", 7, 0);
  drain(world, failures("on_failure = \"halt\"\nmax_attempts = 7\n"));
  CHECK(world.stored(0) == 1);
  CHECK(letter(world, "attempts") == "2");
}

// Without the count in the register each restart would begin anew, and a message whose attempts
// outlast the process would stop its partition for ever.
TEST_CASE("attempts survive a kill and a restart") {
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.use_handler("name = \"throws_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  ProgramOptions options;
  options.arguments = {"--drain", "--kill", "attempt_failed:3"};
  options.extra_config = failures("on_failure = \"dead-letter\"\nmax_attempts = 4\n");
  const auto killed = world.start(options);
  REQUIRE(killed->wait(90s).signal == SIGKILL);
  // Counted before it is told, which names the attempt.
  REQUIRE(world.in_register(0, "attempts") == "3");
  options.arguments = {"--drain"};
  const auto second = world.start(options);
  REQUIRE(second->wait(90s).code == 0);
  CHECK(occurrences(*second, "EVENT attempt_failed") == 1);
  CHECK(letter(world, "attempts") == "4");
}

TEST_CASE("what no retry can help is set aside at once, with its reason") {
  PaymentsWorld world(1);
  world.use_handler(
      R"toml(sql = ["INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)"]
when = '{header:type?} != "other"')toml");
  const auto send = [&](const std::string& id, const std::string& value,
                        const std::string& type = "") {
    Record record;
    record.value = value;
    if (!id.empty())
      record.headers.emplace_back("event-id", id);
    if (!type.empty())
      record.headers.emplace_back("type", type);
    record.partition = 0;
    world.produce_record(record);
  };
  send("a", R"({"account":"acc-1","amount":1})");
  send("b", R"({"account":)");
  send("", R"({"account":"acc-1","amount":1})");
  send("a", R"({"account":"acc-1","amount":2})");
  send("c", R"({"account":"acc-1","amount":1})", "other");
  drain(world, kNeverAgain);
  CHECK(world.stored(0) == 4);
  CHECK(world.value("SELECT string_agg(kafka_offset || ' ' || reason, ', ' ORDER BY kafka_offset) "
                    "FROM pawl.dead_letters") ==
        "1 undecodable, 2 missing-key, 3 conflict, 4 unmatched");
  CHECK(letters(world, "attempts = 1") == 4);
}

TEST_CASE("a handler's PermanentError is not tried again") {
  PaymentsWorld world(1);
  world.use_handler("name = \"permanent_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  drain(world, kNeverAgain);
  CHECK(letter(world, "reason || ' ' || attempts") == "permanent 1");
}

TEST_CASE("a partition that waits for its next attempt delays no other of its worker") {
  PaymentsWorld world(2);
  world.use_handler("name = \"throws_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  world.produce_one("same partition", 3, 0);
  ProgramOptions options;
  options.arguments = {"--set", "consumer.workers=1"};
  options.extra_config = kNeverAgain;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT attempt_failed", 60s);
  for (int i = 0; i < 50; ++i)
    world.produce_one(fmt::format("other-{}", i), 1, 1);
  world.wait_for_stored(1, 49);
  CHECK(world.stored(0) == -1);
  stop_cleanly(*process);
}

TEST_CASE("a store of dead letters that fails loses nothing, and goes on when it can") {
  PaymentsWorld world(1);
  world.use_handler("name = \"throws_on_poison\"");
  world.execute("ALTER TABLE pawl.dead_letters RENAME TO away");
  world.produce_record(poison("poison-1", 0));
  world.produce_one("after", 7, 0);
  ProgramOptions options;
  options.extra_config = failures("on_failure = \"dead-letter\"\nmax_attempts = 1\n");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("cannot store that a message failed", 60s);
  CHECK(world.stored(0) == -1);
  world.execute("ALTER TABLE pawl.away RENAME TO dead_letters");
  world.wait_for_stored(0, 1);
  CHECK(letters(world) == 1);
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
  stop_cleanly(*process);
}

// Letter and offset are one transaction: whenever the process dies, both are there or neither.
TEST_CASE("a kill while a message is set aside leaves one dead letter") {
  const std::string step =
      GENERATE("attempt_failed", "offset_advancing", "commit_sent", "message_dead_lettered");
  CAPTURE(step);
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.use_handler("name = \"permanent_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  world.produce_one("after", 7, 0);
  ProgramOptions options;
  options.extra_config = failures("on_failure = \"dead-letter\"\n");
  options.arguments = {"--drain", "--kill", step + ":1"};
  const auto killed = world.start(options);
  REQUIRE(killed->wait(90s).signal == SIGKILL);
  // In one look: the server may still be at the dead process' COMMIT.
  CHECK(world.value("SELECT (SELECT count(*) FROM pawl.dead_letters) = (SELECT count(*) FROM "
                    "pawl.processed_kafka_offsets WHERE last_processed_offset = 0)") == "t");
  options.arguments = {};
  drain(world, failures("on_failure = \"dead-letter\"\n"));
  CHECK(letters(world) == 1);
  CHECK(world.in_register(0, "dead_count") == "1");
  CHECK(world.stored(0) == 1);
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
}

// A broken program must not empty a topic into a table.
TEST_CASE("failures in a row open the breaker, and it closes by itself") {
  PaymentsWorld world(1);
  world.execute("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (amount < 0) NOT VALID");
  world.produce(100);
  ProgramOptions options;
  options.extra_config =
      failures("on_failure = \"dead-letter\"\nmax_attempts = 1\ncircuit_breaker = 10\n");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(letters(world) == 10);
  CHECK(world.in_register(0, "halt_kind") == "circuit-breaker");
  CHECK(world.in_register(0, "halt_parameters ->> 'messages'") == "10");
  world.execute("ALTER TABLE ledger DROP CONSTRAINT wrong");
  world.wait_until_all_processed();
  CHECK(letters(world) == 10);
  CHECK(world.in_register(0, "state") == "running");
  CHECK(world.number("SELECT count(*) FROM ledger") == 90);
  stop_cleanly(*process);
}

TEST_CASE("messages without a key that are applied between failures keep the breaker closed") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({offset}::text, {/account}, {/amount}::bigint)",
])toml");
  world.execute("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (amount > 0)");
  for (int i = 0; i < 40; ++i) {
    Record record;
    record.value = fmt::format(R"({{"account":"acc-1","amount":{}}})", i % 4 == 3 ? 0 : 1);
    record.partition = 0;
    world.produce_record(record);
  }
  ProgramOptions options;
  options.arguments = {"--set", "idempotency.missing_key=process"};
  options.extra_config =
      failures("on_failure = \"dead-letter\"\nmax_attempts = 1\ncircuit_breaker = 5\n");
  world.drain(options);
  CHECK(letters(world) == 10);
  CHECK(world.number("SELECT count(*) FROM ledger") == 30);
}

TEST_CASE("without payload the letter says where the message is") {
  PaymentsWorld world(1);
  world.use_handler("name = \"permanent_on_poison\"");
  world.produce_record(poison("poison-1", 0));
  ProgramOptions options;
  options.extra_config = failures("on_failure = \"dead-letter\"\n") + "[dead_letters]\n";
  SECTION("store_payload = false") {
    options.extra_config += "store_payload = false\n";
    world.drain(options);
    CHECK(letter(world, "payload") == "omitted");
    CHECK(letter(world, "record_value IS NULL AND record_key IS NULL AND headers IS NULL") == "t");
  }
  SECTION("a value larger than max_payload is cut") {
    options.extra_config += "max_payload = \"10B\"\n";
    world.drain(options);
    CHECK(letter(world, "payload || ' ' || length(record_value)") == "truncated 10");
  }
  CHECK(letter(world, "value_bytes") == "39");
  CHECK(letter(world, "topic || ' ' || kafka_offset") == world.topic() + " 0");
}
