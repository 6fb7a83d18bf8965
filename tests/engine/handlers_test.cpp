#include <fmt/format.h>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kImpatient = R"(
[failures]
max_attempts = 2
retry_initial = "10ms"
program_error_retry = "200ms"
)";

ProgramOptions impatient(std::vector<std::string> arguments = {}) {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config = kImpatient;
  return options;
}

std::unique_ptr<pawl::testing::ChildProcess> drain(PaymentsWorld& world, int expected_code,
                                                   std::vector<std::string> arguments = {}) {
  arguments.emplace_back("--drain");
  auto process = world.start(impatient(std::move(arguments)));
  const auto status = process->wait(90s);
  INFO(process->output());
  REQUIRE(status.code == expected_code);
  return process;
}

/// As an operator does it, while the consumer runs. `offset` empty: stays where it is.
void let_run(const PaymentsWorld& world, int partition, const std::string& offset = "NULL") {
  world.execute(fmt::format(
      "SELECT pawl.operator_change(consumer_id, topic, partition, {}, 'running', 'resume', 'test')"
      "  FROM pawl.processed_kafka_offsets WHERE partition = {}",
      offset, partition));
}

std::int64_t entries(const PaymentsWorld& world) {
  // Both effects of a payment, which must agree.
  const auto ledger = world.number("SELECT count(*) FROM ledger");
  REQUIRE(world.number("SELECT coalesce(sum(entries), 0) FROM accounts") == ledger);
  return ledger;
}

std::int64_t keys(const PaymentsWorld& world) {
  return world.number("SELECT count(*) FROM pawl.idempotency_keys");
}

/// The halt names what a person needs to find the message.
void require_reason(const PaymentsWorld& world, int partition, std::int64_t offset,
                    const std::string& says) {
  const auto facts = world.in_register(partition, kHaltFacts);
  INFO(facts);
  REQUIRE(world.in_register(partition, "state") == "halted");
  REQUIRE(world.in_register(partition, "halt_offset") == std::to_string(offset));
  REQUIRE(facts.find(says) != std::string::npos);
}

Record payment(const std::string& event_id, const std::string& value, int partition) {
  Record record;
  record.key = "acc-1";
  record.value = value;
  record.headers = {{"event-id", event_id}};
  record.partition = partition;
  return record;
}

const std::string kGood = R"({"account":"acc-1","amount":5})";

}  // namespace

// Without the raising advance: libpqxx' commit() returns normally after a swallowed error, and the
// advance would commit alone after a raw ROLLBACK; the message would be lost silently.
TEST_CASE("a handler that breaks its transaction halts, with nothing stored") {
  const std::string handler =
      GENERATE("swallows_error", "raw_rollback", "raw_rollback_begin", "calls_commit",
               "calls_abort", "defers_failing", "defers_rollback", "defers_in_subtransaction");
  CAPTURE(handler);
  PaymentsWorld world(2);
  world.use_handler(fmt::format("name = \"{}\"", handler));
  world.produce_one("first", 5, 0);
  world.produce_one("second", 6, 0);
  world.produce_one("third", 7, 1);
  drain(world, 4);
  require_reason(world, 0, 0, "\"first\"");
  require_reason(world, 1, 0, "\"third\"");
  REQUIRE(entries(world) == 0);
  REQUIRE(keys(world) == 0);
  REQUIRE(world.processed() == 0);

  // Nothing was lost either: the corrected program does it all.
  world.use_handler("name = \"payment\"");
  world.drain();
  REQUIRE(world.imbalance() == "");
}

// The answer to it never ends: the worker would spin, and all its partitions stand.
TEST_CASE(
    "a handler that defers a COPY halts its partition, as the program's fault, and no other") {
  const std::string what = GENERATE("copy in", "copy out");
  CAPTURE(what);
  PaymentsWorld world(2);
  world.use_handler("name = \"defers_copy\"\non_failure = \"dead-letter\"");
  world.produce_one("good", 5, 0);
  world.produce_one(what, 6, 0);
  const auto process = world.start(impatient({"--set", "consumer.workers=1"}));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  REQUIRE(world.in_register(0, "halt_offset") == "1");
  REQUIRE_THAT(world.in_register(0, "halt_cause"), ContainsSubstring("COPY cannot be deferred") &&
                                                       ContainsSubstring("pqxx::stream_to"));
  REQUIRE(world.in_register(0, "halt_kind") == "program");
  REQUIRE(world.stored(0) == 0);
  for (int i = 0; i < 20; ++i)
    world.produce_one(fmt::format("other-{}", i), i + 1, 1);
  world.wait_for_stored(1, 19);
  REQUIRE(entries(world) == 21);
  REQUIRE(keys(world) == 21);
  REQUIRE(occurrences(*process, "EVENT database_disconnected") == 0);
  stop_cleanly(*process);

  world.use_handler("name = \"payment\"");
  world.drain();
  REQUIRE(world.imbalance() == "");
}

// What is committed cannot be taken back, but must not pass in silence: a second try would find a
// duplicate and go on.
TEST_CASE("a handler that commits by itself halts at once and says so") {
  PaymentsWorld world(1);
  world.use_handler("name = \"raw_commit\"");
  world.produce_one("first", 5, 0);
  const auto process = drain(world, 4);
  require_reason(world, 0, 0, "COMMIT");
  REQUIRE(occurrences(*process, "EVENT attempt_failed") == 1);
  REQUIRE(world.stored(0) == -1);
  world.use_handler("name = \"payment\"");
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE(
    "a constraint that fails at COMMIT stores nothing of its message, and is tried again when "
    "asked") {
  PaymentsWorld world(2);
  world.execute(
      "ALTER TABLE ledger ADD CONSTRAINT at_commit UNIQUE (amount) DEFERRABLE INITIALLY DEFERRED");
  if (GENERATE(false, true))
    world.use_handler("name = \"payment\"");
  world.produce_one("a", 5, 0);
  world.produce_one("b", 5, 0);
  world.produce_one("c", 7, 0);
  world.produce_one("d", 8, 1);
  const auto process = world.start(impatient());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  world.wait_for_stored(1, 0);
  require_reason(world, 0, 1, "at_commit");
  REQUIRE(world.stored(0) == 0);
  REQUIRE(entries(world) == 2);
  REQUIRE(keys(world) == 2);

  world.execute("ALTER TABLE ledger DROP CONSTRAINT at_commit");
  let_run(world, 0);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(world.in_register(0, "state") == "running");
  stop_cleanly(*process);
}

// DETAIL of a violated constraint quotes the row: "Key (event_id)=(secret-of-a-row) already
// exists."
TEST_CASE("what PostgreSQL quotes from rows is neither in the halt nor in the events") {
  PaymentsWorld world(1);
  if (GENERATE(false, true))
    world.use_handler("name = \"payment\"");
  world.execute("INSERT INTO ledger VALUES ('e-1', 'acc-1', 5)");
  world.produce_one("e-1", 5, 0);
  const auto process = drain(world, 4);
  const auto facts = world.in_register(0, kHaltFacts);
  INFO(facts << process->output());
  REQUIRE(facts.find("ledger_pkey") != std::string::npos);
  REQUIRE(facts.find("already exists") == std::string::npos);
  REQUIRE(process->output().find("already exists") == std::string::npos);
}

TEST_CASE("deferred statements run in their order, behind what the handler executed itself") {
  PaymentsWorld world(2);
  world.use_handler("name = \"deferred\"");
  if (GENERATE(false, true))
    world.set_postgres_options("pooled = true");
  world.produce(200);
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("deferred statements with values in their text are not kept without bound") {
  PaymentsWorld world(1);
  world.use_handler("name = \"deferred_texts\"");
  world.produce(300);
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("a handler may use subtransactions") {
  PaymentsWorld world(2);
  world.use_handler("name = \"subtransaction\"");
  world.produce(100);
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("a message that cannot be applied stops its partition at it, and no other") {
  PaymentsWorld world(2);
  world.use_handler("name = \"throws_on_poison\"");
  world.produce_one("good-1", 5, 0);
  world.produce_one("poison-1", 6, 0);
  world.produce_one("good-2", 7, 0);
  const auto process = world.start(impatient());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  for (int i = 0; i < 20; ++i)
    world.produce_one(fmt::format("other-{}", i), i + 1, 1);
  world.wait_for_stored(1, 19);
  require_reason(world, 0, 1, R"("idempotency_key": "poison-1")");
  REQUIRE(world.stored(0) == 0);
  REQUIRE(occurrences(*process, "EVENT attempt_failed") == 2);

  SECTION("the running process tries again when an operator says so") {
    let_run(world, 0);
    process->wait_for_output("EVENT partition_fenced", 30s);
    wait_until([&] { return occurrences(*process, "EVENT attempt_failed") > 2; }, 30s,
               "another try");
    world.wait_for_state(0, "halted");
  }
  SECTION("a restart tries once more") {
    stop_cleanly(*process);
    const auto again = drain(world, 4);
    REQUIRE(occurrences(*again, "EVENT attempt_failed") == 1);
    REQUIRE(world.stored(0) == 0);
  }
  SECTION("an operator may pass over it") {
    let_run(world, 0, "1");
    world.wait_for_stored(0, 2);
    REQUIRE(world.number("SELECT count(*) FROM ledger WHERE event_id LIKE 'poison%'") == 0);
    REQUIRE(entries(world) == 22);
    return;
  }
  if (process->running())
    stop_cleanly(*process);
  world.use_handler("name = \"payment\"");
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("a missing table blames the program, and work goes on by itself once it is there") {
  PaymentsWorld world(2);
  world.execute("ALTER TABLE ledger RENAME TO ledger_elsewhere");
  if (GENERATE(false, true))
    world.use_handler("name = \"payment\"");
  world.produce(50);
  const auto process = world.start(impatient());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  REQUIRE(world.in_register(0, "halt_kind") == "program");
  REQUIRE(world.processed() == 0);
  REQUIRE(keys(world) == 0);
  world.execute("ALTER TABLE ledger_elsewhere RENAME TO ledger");
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(world.in_register(0, "state") == "running");
  stop_cleanly(*process);
}

TEST_CASE("a statement that touches another number of rows than expected stores nothing") {
  PaymentsWorld world(2);
  world.execute("DELETE FROM accounts WHERE id = 'acc-1'");
  world.produce_one("lost-money", 5, 0);
  const auto process = world.start(impatient());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  require_reason(world, 0, 0, "expect_rows");
  REQUIRE(world.number("SELECT count(*) FROM ledger") == 0);
  REQUIRE(keys(world) == 0);
  world.execute("INSERT INTO accounts (id) VALUES ('acc-1')");
  let_run(world, 0);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  stop_cleanly(*process);
}

TEST_CASE("bad input stops its own partition with a reason, the others go on, nothing is lost") {
  struct Bad {
    std::string what;
    Record record;
    std::string reason;
  };
  std::vector<Bad> bads;
  const auto add = [&](const std::string& what, const std::string& id, const std::string& value,
                       const std::string& reason) {
    bads.push_back({what, payment(id, value, static_cast<int>(bads.size())), reason});
  };
  add("NUL byte in JSON", "bad-0", "{\"account\":\"acc-1\0\",\"amount\":1}"s, "JSON");
  add("escaped NUL", "bad-1", R"({"account":"acc-1\u0000","amount":1})", "NUL");
  add("value that is not UTF-8", "bad-2", "{\"account\":\"acc-1\xff\",\"amount\":1}", "UTF-8");
  add("header with NUL", "bad\0three"s, kGood, "NUL");
  add("header that is not UTF-8", "bad\xff", kGood, "UTF-8");
  add("tombstone", "bad-5", "", "/account");
  bads.back().record.value = std::nullopt;
  add("broken JSON", "bad-6", R"({"account":)", "JSON");
  add("JSON nested too deeply", "bad-7", std::string(3000, '[') + std::string(3000, ']'), "nested");
  add("number beyond bigint", "bad-8", R"({"account":"acc-1","amount":9223372036854775808})",
      "22003");
  add("fraction for a bigint", "bad-9", R"({"account":"acc-1","amount":1.5})", "22P02");
  add("no key", "", kGood, "no idempotency key");
  bads.back().record.headers.clear();
  add("null key", "", kGood, "no idempotency key");
  bads.back().record.headers = {{"event-id", std::nullopt}};
  add("empty key", "", kGood, "no idempotency key");
  add("missing field", "bad-13", R"({"account":"acc-1"})", "/amount");
  add("JSON null where the table wants a value", "bad-14", R"({"account":null,"amount":1})",
      "23502");
  add("empty value", "bad-15", "", "JSON");

  const int partitions = static_cast<int>(bads.size()) + 1;
  PaymentsWorld world(partitions);
  KafkaProducer producer(world.broker().bootstrap());
  for (int p = 0; p < partitions; ++p) {
    producer.send(world.topic(), payment(fmt::format("before-{}", p), kGood, p));
    if (p + 1 < partitions)
      producer.send(world.topic(), bads[static_cast<std::size_t>(p)].record);
    producer.send(world.topic(), payment(fmt::format("after-{}", p), kGood, p));
  }
  producer.flush();
  const auto process = world.start(impatient());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(partitions - 1, 1);
  for (int p = 0; p + 1 < partitions; ++p) {
    const auto& bad = bads[static_cast<std::size_t>(p)];
    CAPTURE(bad.what);
    world.wait_for_state(p, "halted");
    require_reason(world, p, 1, bad.reason);
    REQUIRE(world.stored(p) == 0);
  }
  REQUIRE(entries(world) == partitions + 1);
  REQUIRE(keys(world) == partitions + 1);

  // Passed over by an operator, what stands behind them is there.
  for (int p = 0; p + 1 < partitions; ++p)
    let_run(world, p, "1");
  for (int p = 0; p + 1 < partitions; ++p)
    world.wait_for_stored(p, 2);
  REQUIRE(entries(world) == 2 * partitions);
  stop_cleanly(*process);
}

TEST_CASE("odd input that can be applied is applied") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(key = "{key}"
sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES (coalesce({header:event-id}, 'none'), {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  KafkaProducer producer(world.broker().bootstrap(), "", {{"message.max.bytes", "2000000"}});
  const auto send = [&](const std::string& key, const std::string& id, const std::string& value) {
    auto record = payment(id, value, 0);
    record.key = key;
    producer.send(world.topic(), record);
  };
  send(std::string(1'000'000, 'k'), "1 MB key", kGood);
  send(std::string(1'000'000, 'k'), "1 MB key", kGood);
  send("key with \0 in it"s, "NUL key", kGood);
  send("key \xff\xfe", "invalid key", kGood);
  send("deep", "deep",
       R"({"account":"acc-1","amount":5,"x":)" + std::string(900, '[') + std::string(900, ']') +
           "}");
  send("largest", "largest", R"({"account":"acc-2","amount":9223372036854775807})");
  producer.flush();
  const auto process = drain(world, 0);
  REQUIRE(entries(world) == 5);
  REQUIRE(world.stored(0) == 5);
  REQUIRE(world.in_register(0, "duplicate_count") == "1");
  REQUIRE(world.number(
              "SELECT count(*) FROM pawl.idempotency_keys WHERE key ~ '^sha256:[0-9a-f]{64}$'") ==
          3);
  REQUIRE(world.number("SELECT balance FROM accounts WHERE id = 'acc-2'") == 9223372036854775807);
}

TEST_CASE("a message without key follows idempotency.missing_key") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES (coalesce({header:event-id?}, 'none'), {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  KafkaProducer producer(world.broker().bootstrap());
  auto keyless = payment("", kGood, 0);
  keyless.headers.clear();
  producer.send(world.topic(), keyless);
  producer.send(world.topic(), payment("with-key", kGood, 0));
  producer.flush();
  SECTION("fail") {
    drain(world, 4, {"--set", "idempotency.missing_key=fail"});
    REQUIRE(world.stored(0) == -1);
    REQUIRE(entries(world) == 0);
  }
  SECTION("process") {
    drain(world, 0, {"--set", "idempotency.missing_key=process"});
    REQUIRE(entries(world) == 2);
    REQUIRE(keys(world) == 1);
    REQUIRE(world.in_register(0, "unchecked_count") == "1");
  }
  SECTION("skip") {
    drain(world, 0, {"--set", "idempotency.missing_key=skip"});
    REQUIRE(entries(world) == 1);
    REQUIRE(world.in_register(0, "skipped_count") == "1");
    REQUIRE(world.value("SELECT reason FROM pawl.skipped_messages WHERE kafka_offset = 0") ==
            "no idempotency key");
  }
}

TEST_CASE("a key that comes again with another payload follows idempotency.conflict") {
  PaymentsWorld world(1);
  KafkaProducer producer(world.broker().bootstrap());
  producer.send(world.topic(), payment("same", kGood, 0));
  producer.send(world.topic(), payment("same", R"({"amount":5,"account":"acc-1"})", 0));
  producer.send(world.topic(), payment("other", kGood, 0));
  producer.flush();
  SECTION("fail") {
    drain(world, 4);
    require_reason(world, 0, 1, fmt::format("another payload, at {}[0]@0", world.topic()));
    REQUIRE(world.stored(0) == 0);
    REQUIRE(entries(world) == 1);
  }
  SECTION("ignore") {
    drain(world, 0, {"--set", "idempotency.conflict=ignore"});
    REQUIRE(entries(world) == 2);
    REQUIRE(world.in_register(0, "duplicate_count") == "1");
  }
}

TEST_CASE("handlers are chosen by when, and what none chooses follows failures.unmatched") {
  PaymentsWorld world(1);
  world.use_handler(fmt::format(R"toml(when = '{{header:type}} == "pay"'
sql = ["INSERT INTO ledger VALUES ({{header:event-id}}, {{/account}}, {{/amount}}::bigint)"]

[[handler]]
topics = ["{}"]
when = '{{header:type}} == "refund"'
sql = ["INSERT INTO ledger VALUES ({{header:event-id}}, {{/account}}, -{{/amount}}::bigint)"]
)toml",
                                world.topic()));
  KafkaProducer producer(world.broker().bootstrap());
  for (const auto* type : {"pay", "refund", "gift", "pay"}) {
    auto record = payment(fmt::format("event-{}", type), kGood, 0);
    record.headers.emplace_back("type", type);
    producer.send(world.topic(), record);
  }
  producer.flush();
  const auto amounts = [&] {
    return world.value("SELECT string_agg(amount::text, ',' ORDER BY event_id) FROM ledger");
  };
  SECTION("fail") {
    drain(world, 4);
    require_reason(world, 0, 2, "when");
    REQUIRE(amounts() == "5,-5");
  }
  SECTION("skip") {
    drain(world, 0, {"--set", "failures.unmatched=skip"});
    REQUIRE(amounts() == "5,-5");
    REQUIRE(world.stored(0) == 3);
    REQUIRE(world.in_register(0, "skipped_count") == "1");
    REQUIRE(world.in_register(0, "duplicate_count") == "1");
    REQUIRE(world.number("SELECT kafka_offset FROM pawl.skipped_messages") == 2);
  }
}
