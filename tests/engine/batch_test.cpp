// Many messages in one transaction, as long as all is well; failures are in
// batch_failures_test.cpp.
#include <fmt/format.h>

#include "batch_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

Record payment(const std::string& id, const std::string& value, int partition = 0) {
  Record record;
  record.key = "acc-1";
  record.value = value;
  if (!id.empty())
    record.headers = {{"event-id", id}};
  record.partition = partition;
  return record;
}

/// Its type is a header of this name.
Record payment_of_type(const char* type, int id, int partition = 0) {
  auto record = payment(fmt::format("m-{}-{}", partition, id), R"({"account":"acc-1","amount":1})",
                        partition);
  record.headers.emplace_back("type", type);
  return record;
}

/// Batches of the type "batch", and the handler of single ones for the rest, or as `when` says.
void use_batches_beside_singles(PaymentsWorld& world, const std::string& when,
                                const std::string& batches = kBatchCode) {
  world.use_handler(
      fmt::format("when = '{{header:type}} == \"batch\"'\n{}\n[[handler]]\ntopics = "
                  "[\"{}\"]\n{}name = \"payment\"",
                  batches, world.topic(), when));
}

}  // namespace

TEST_CASE("a backlog goes in batches, each message once and in the log's order") {
  PaymentsWorld world(4);
  world.use_handler(GENERATE(kBatchSql, kBatchCode));
  note_order(world);
  world.produce(3000);
  world.drain();
  CHECK(world.imbalance() == "");
  CHECK(out_of_order(world) == 0);
  // At most: what is there when a batch begins varies.
  CHECK(transactions(world) < 1000);
  CHECK(world.number("SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets") == 30);
}

TEST_CASE("code for batches may COPY") {
  PaymentsWorld world(1);
  world.execute("CREATE TABLE incoming (id text, value jsonb)");
  world.use_handler("name = \"batch_stream\"");
  world.produce(300);
  world.drain();
  CHECK(world.number("SELECT count(*) FROM incoming") == 300);
  CHECK(world.number("SELECT count(DISTINCT id) FROM incoming") == 300);
}

TEST_CASE("a batch has at most max_messages, and at most max_bytes") {
  struct Bound {
    const char* config;
    int largest;
    int processed;  // by full batches
  };
  // About 36 bytes of key and value each.
  const auto bound =
      GENERATE(Bound{"max_messages = 7\nlinger = \"1m\"\n", 7, 98},
               Bound{"max_bytes = \"1KiB\"\n", 30, 101}, Bound{"max_messages = 1\n", 1, 101});
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  world.produce(100);
  ProgramOptions options;
  options.extra_config = std::string("[batch]\n") + bound.config;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_processed(bound.processed);
  CHECK(largest_batch(*process) <= bound.largest);
  CHECK(largest_batch(*process) > bound.largest / 2);
  stop_cleanly(*process);
}

TEST_CASE("a batch that is not full waits for more, as long as it may linger") {
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  ProgramOptions options;
  options.extra_config = "[batch]\nmax_messages = 5\nlinger = \"1m\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT fetch_positioned", 30s);
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("one-{}", i), 1, 0);
  world.wait_until_all_processed();
  CHECK(occurrences(*process, "BATCH") == 1);
  CHECK(occurrences(*process, "BATCH 5 of 0 at 0") == 1);
  stop_cleanly(*process);
}

// Fails when a deadline that has passed once is never set again.
TEST_CASE("each batch that is not full waits, not only the first") {
  PaymentsWorld world(1);
  world.use_handler(kBatchCode);
  ProgramOptions options;
  options.extra_config = "[batch]\nmax_messages = 5\nlinger = \"5s\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.produce_one("alone", 1, 0);
  world.wait_until_all_processed();
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("one-{}", i), 1, 0);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  CHECK(occurrences(*process, "BATCH 5 of 0 at 1") == 1);
  stop_cleanly(*process);
}

// Fails when the ends of the log that come between the messages fill the batch.
TEST_CASE("a batch waits for messages, whatever comes between them") {
  PaymentsWorld world(2);
  use_batches_beside_singles(world, "");
  ProgramOptions options;
  options.extra_config = "[batch]\nmax_messages = 5\nlinger = \"1m\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 5; ++i) {
    world.produce_record(payment_of_type("batch", i, 0));
    // Whenever Kafka answers with something of this partition, the other one is at its end.
    world.produce_record(payment_of_type("single", i, 1));
    world.wait_for_stored(1, i);
  }
  world.wait_for_stored(0, 4);
  CHECK(occurrences(*process, "BATCH 5 of 0 at 0") == 1);
  stop_cleanly(*process);
}

// Fails when only the number of messages tells whether more may come.
TEST_CASE("a batch that ends before another handler's message does not linger") {
  PaymentsWorld world(1);
  use_batches_beside_singles(world, "");
  for (int i = 0; i < 4; ++i)
    world.produce_record(payment_of_type(i < 3 ? "batch" : "single", i));
  ProgramOptions options;
  options.extra_config = "[batch]\nlinger = \"1m\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  pawl::testing::wait_until([&] { return world.stored(0) == 3; }, 45s,
                            "all to be applied before a batch may have lingered");
  CHECK(occurrences(*process, "BATCH 3 of 0 at 0") == 1);
  stop_cleanly(*process);
}

TEST_CASE("duplicates within a batch, across batches and of a single message's key are left out") {
  PaymentsWorld world(1);
  world.use_handler("name = \"respond\"");
  world.produce_one("early", 3, 0);
  world.drain();
  world.use_handler(kBatchCode);
  for (int round = 0; round < 2; ++round) {
    for (const auto* id : {"a", "b", "a", "early", "c", "b", "early"})
      world.produce_one(id, 3, 0);
    const auto process = world.start({{"--drain"}});
    REQUIRE(process->wait(60s).success());
    INFO(process->output());
    CHECK(world.imbalance() == "");
    // Their own duplicates have none: this code gives no responses.
    CHECK(occurrences(*process, "RESPONSE response to early") == 2);
    CHECK(occurrences(*process, "RESPONSE none") == (round == 0 ? 2 : 5));
  }
  CHECK(world.in_register(0, "applied_count || ' ' || duplicate_count") == "4 11");
}

TEST_CASE(
    "a key with another payload is left to the policy, whether its first one is in the batch") {
  PaymentsWorld world(1);
  world.use_handler(GENERATE(kBatchSql, kBatchCode));
  const auto good = R"({"account":"acc-1","amount":5})";
  const auto other = R"({"account":"acc-1","amount":6})";
  world.produce_record(payment("stored", good));
  world.drain();
  for (int i = 0; i < 10; ++i)
    world.produce_record(payment(fmt::format("x-{}", i), good));
  world.produce_record(payment("stored", other));
  world.produce_record(payment("x-3", other));
  world.produce_record(payment("stored", good));
  for (int i = 10; i < 20; ++i)
    world.produce_record(payment(fmt::format("x-{}", i), good));
  ProgramOptions options;
  const bool ignore = GENERATE(false, true);
  if (!ignore)
    options.extra_config = "[failures]\non_failure = \"dead-letter\"\n";
  if (ignore)
    world.use_handler(std::string(kBatchCode) + "\nconflict = \"ignore\"");
  world.drain(options);
  CHECK(world.number("SELECT count(*) FROM ledger") == 21);
  CHECK(world.number("SELECT sum(amount) FROM ledger") == 105);
  CHECK(
      world.value("SELECT string_agg(idempotency_key || ' ' || reason || ' ' || kafka_offset, ', ' "
                  "ORDER BY kafka_offset) FROM pawl.dead_letters") ==
      (ignore ? "" : "stored conflict 11, x-3 conflict 12"));
  CHECK(world.in_register(0, "applied_count || ' ' || duplicate_count || ' ' || dead_count") ==
        (ignore ? "21 3 0" : "21 1 2"));
}

TEST_CASE("messages without a key go in batches where they are applied unchecked") {
  PaymentsWorld world(1);
  const bool keys_too = GENERATE(false, true);
  world.use_handler("name = \"batch_unchecked\"\nmissing_key = \"process\"");
  int keys = 0;
  for (int i = 0; i < 60; ++i) {
    const bool keyed = keys_too && i % 3 == 0;
    keys += keyed ? 1 : 0;
    world.produce_record(payment(keyed ? fmt::format("k-{}", i) : "", "{}"));
  }
  world.drain();
  CHECK(world.number("SELECT entries FROM accounts WHERE id = 'acc-1'") == 60);
  CHECK(world.in_register(0, "applied_count || ' ' || unchecked_count") ==
        fmt::format("60 {}", 60 - keys));
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys") == keys);
}

TEST_CASE("messages of other handlers, and those that are skipped, keep their place") {
  PaymentsWorld world(1);
  note_order(world);
  use_batches_beside_singles(world, "when = '{header:type} == \"single\"'\n", kBatchSql);
  int applied = 0;
  for (int i = 0; i < 200; ++i) {
    const char* type = i % 50 < 40 ? "batch" : i % 50 < 48 ? "single" : "nobody's";
    applied += i % 50 < 48 ? 1 : 0;
    world.produce_record(payment_of_type(type, i));
  }
  ProgramOptions options;
  options.extra_config = "[failures]\nunmatched = \"skip\"\n";
  world.drain(options);
  CHECK(world.number("SELECT count(*) FROM ledger") == applied);
  CHECK(world.in_register(0, "skipped_count") == "8");
  CHECK(out_of_order(world) == 0);
  CHECK(transactions(world) < applied);
}

TEST_CASE("the elements of arrays are the messages' values, whatever these are") {
  PaymentsWorld world(1);
  // As somebody may have set them for all sessions.
  const bool odd_settings = GENERATE(false, true);
  const bool pooled = GENERATE(false, true);
  CAPTURE(odd_settings, pooled);
  if (odd_settings) {
    world.set_for_database("array_nulls = off");
    world.set_for_database("standard_conforming_strings = off");
  }
  if (pooled)
    world.set_postgres_options("pooled = true");
  world.execute(
      "CREATE TABLE texts (key text, text text, number numeric, flag boolean, doc jsonb)");
  world.use_handler(R"toml(batch = true
sql = """INSERT INTO texts SELECT * FROM unnest({header:event-id}::text[], {/text?}::text[], {/number?}::numeric(20, 3)[],
         {/flag?}::boolean[], {/doc?}::jsonb[])"""
)toml");
  const std::vector<std::pair<std::string, std::string>> texts{{"quotes", R"(\"a\" 'b')"},
                                                               {"backslashes", R"(\\a\\\\)"},
                                                               {"braces", "{1,{2}}"},
                                                               {"empty", ""},
                                                               {"null word", "NULL"},
                                                               {"controls", R"(\u0001\t\n\u007f)"},
                                                               {"blanks", "  a b  "},
                                                               {"unicode", "äöü\xF0\x9F\x90\xBE"},
                                                               {"comma", ",,"},
                                                               {"dollar", "$1 {/text}"},
                                                               {"quote", R"(\")"},
                                                               {"null word 2", "null"}};
  for (const auto& [key, text] : texts) {
    world.produce_record(payment(
        key,
        fmt::format(R"({{"text":"{0}","number":12.5,"flag":true,"doc":{{"t":"{0}"}}}})", text)));
  }
  world.produce_record(payment("missing", "{}"));
  world.produce_record(payment("null", R"({"text":null,"number":null,"flag":null,"doc":null})"));
  world.drain();
  CHECK(world.number("SELECT count(*) FROM texts") == 14);
  // jsonb has read the text by itself, and so tells what it is.
  CHECK(world.number(
            "SELECT count(*) FROM texts WHERE text = doc->>'t' AND number = 12.5 AND flag") == 12);
  CHECK(world.value("SELECT string_agg(key, ' ' ORDER BY key) FROM texts WHERE text IS NULL AND "
                    "number IS NULL AND flag IS NULL AND doc IS NULL") == "missing null");
  CHECK(world.number("SELECT count(DISTINCT xmin::text) FROM texts") < 14);
}

TEST_CASE("a value that must be there and is not stops its own message only") {
  PaymentsWorld world(1);
  world.use_handler(kBatchSql);
  const auto good = R"({"account":"acc-1","amount":5})";
  for (int i = 0; i < 5; ++i)
    world.produce_record(payment(fmt::format("before-{}", i), good));
  world.produce_record(payment("bad", R"({"account":"acc-1"})"));
  Record tombstone = payment("gone", "");
  tombstone.value = std::nullopt;
  world.produce_record(tombstone);
  for (int i = 0; i < 5; ++i)
    world.produce_record(payment(fmt::format("after-{}", i), good));
  ProgramOptions options;
  options.extra_config = "[failures]\non_failure = \"dead-letter\"\n";
  world.drain(options);
  CHECK(world.number("SELECT count(*) FROM ledger") == 10);
  CHECK(
      world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ' ORDER BY kafka_offset) "
                  "FROM pawl.dead_letters") == "bad undecodable, gone undecodable");
}

TEST_CASE("batches go through a pooler's rules too") {
  PaymentsWorld world(2);
  world.set_postgres_options("pooled = true");
  world.use_handler(kBatchSql);
  world.produce(500);
  world.drain();
  CHECK(world.imbalance() == "");
  CHECK(transactions(world) < 250);
}

TEST_CASE("with park each message has its own transaction, and waits behind its record key") {
  PaymentsWorld world(1);
  world.use_handler(std::string(kBatchPoison) + "\non_failure = \"park\"\nmax_attempts = 1");
  const auto good = R"({"account":"acc-1","amount":5})";
  world.produce_record(payment("a", good));
  world.produce_record(payment("poison", good));
  world.produce_record(payment("b", good));
  const auto process = world.start({{"--drain"}});
  REQUIRE(process->wait(60s).success());
  CHECK(largest_batch(*process) == 1);
  CHECK(
      world.value("SELECT string_agg(status, ' ' ORDER BY kafka_offset) FROM pawl.dead_letters") ==
      "dead parked");
}
