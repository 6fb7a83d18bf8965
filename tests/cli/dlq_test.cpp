#include <csignal>
#include <nlohmann/json.hpp>

#include "failing_site.hpp"
#include "prelude.hpp"

TEST_CASE("dlq list and show tell what died and why") {
  Failing site("dead-letter");
  site.pay(0, "good", "a", "1");
  site.pay(0, "bad", "stranger", "1");
  site.pay(0, "worse", "a", "\"much\"");
  site.drain();

  const auto list = site.run({"dlq", "list"});
  INFO(list.out << list.err);
  CHECK(list.code == 0);
  CHECK_THAT(list.out, ContainsSubstring("REASON") && ContainsSubstring("HANDLER") &&
                           ContainsSubstring("  " + site.topic + "[0]@1 ") &&
                           !ContainsSubstring("(cut") && ContainsSubstring("  sql[0]: "));
  CHECK_THAT(list.out, ContainsSubstring("violates check constraint"));

  const auto dead_letters = [&site](std::vector<std::string> filter) {
    filter.insert(filter.begin(), {"dlq", "list", "--json"});
    const auto report = nlohmann::json::parse(site.run(std::move(filter)).out);
    CHECK(report.at("matching") == report.at("dead_letters").size());
    return report.at("dead_letters");
  };
  const auto rows = dead_letters({});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["offset"] == 1);
  CHECK(rows[0]["sqlstate"] == "23514");
  CHECK(rows[0]["statement"] == "sql[0]");
  CHECK(rows[0]["idempotency_key"] == "bad");
  CHECK(rows[1]["sqlstate"] == "22P02");

  CHECK(dead_letters({"--topic", "other"}).empty());
  CHECK(dead_letters({"--reason", "error"}).size() == 2);
  CHECK(dead_letters({"--older-than", "1h"}).empty());
  CHECK(dead_letters({"--younger-than", "1h"}).size() == 2);
  CHECK_THAT(site.run({"dlq", "list", "--counts"}).out, ContainsSubstring("2"));
  CHECK(site.run({"dlq", "list", "--older-than", "soon"}).code == 2);

  const auto id = rows[0]["id"].dump();
  const auto show = site.run({"dlq", "show", id});
  CHECK(show.code == 0);
  CHECK_THAT(show.out,
             StartsWith("Dead letter " + id + " ") &&
                 ContainsSubstring("\nMessage             " + site.topic + "[0]@1   ") &&
                 ContainsSubstring("\nError               23514  sql[0]: ") &&
                 ContainsSubstring("\nIdempotency key     bad\n") &&
                 ContainsSubstring("\n                      \"account\": \"stranger\",\n") &&
                 ContainsSubstring("\nNext                pawl dlq replay --config ") &&
                 ContainsSubstring(" " + id + " --because TEXT\n"));
  TempDir folder("letter");
  const auto file = folder.path() / "value";
  CHECK(site.run({"dlq", "show", id, "--value-to", file.string()}).code == 0);
  CHECK(read_file(file) == R"({"account": "stranger", "amount": 1})");
  const auto none = site.run({"dlq", "show", "999999"});
  CHECK(none.code == 2);
  CHECK_THAT(none.err, ContainsSubstring("no dead letter 999999"));
}

TEST_CASE("a dead letter and try name the schema of a value in Confluent's wire format") {
  Failing site("dead-letter");
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic,
                {.value = "\0\0\0\0\7\2a"s, .headers = {{"event-id", "avro"}}, .partition = 0});
  producer.flush();
  const std::string schema = "Confluent schema id 7; pawl reads JSON only";
  const auto tried = site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "0"});
  CHECK(tried.code == 1);
  CHECK_THAT(tried.err, ContainsSubstring(schema));
  site.drain();
  CHECK(site.count("error LIKE '%" + schema + "%'") == "1");
}

TEST_CASE("replay applies a letter once, however often it is said") {
  Failing site("dead-letter");
  site.pay_strangers(3);
  site.drain();
  const auto all = site.ids();

  const auto dry = site.run({"dlq", "replay", "--all", "--dry-run"});
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, ContainsSubstring("would replay 3 dead letters"));
  CHECK(site.count("status = 'dead'") == "3");

  // Of an earlier error.
  site.sql(
      "UPDATE pawl.dead_letters SET statement = NULL, sqlstate = '40P01', error_detail = "
      "'earlier'");
  const auto fails = site.run({"dlq", "replay", "--all"});
  CHECK(fails.code == 1);
  CHECK_THAT(fails.out, ContainsSubstring("replayed 0, 3 failed again"));
  CHECK_THAT(fails.err, ContainsSubstring(": sql[0]: "));
  CHECK(site.count("status = 'dead' AND replays = 1 AND statement = 'sql[0]' AND sqlstate = "
                   "'23514' AND error_detail IS DISTINCT FROM 'earlier'") == "3");
  CHECK(site.sql("SELECT count(*) FROM pawl.idempotency_keys") == "0");

  site.mend();
  const auto first = site.run({"dlq", "replay", all.substr(0, all.find(' '))});
  INFO(first.out << first.err);
  CHECK(first.code == 0);
  CHECK(site.count("status = 'replayed'") == "1");
  CHECK(site.run({"dlq", "replay", all.substr(0, all.find(' '))}).code == 0);
  CHECK(site.run({"dlq", "replay", "--all", "--limit", "1"}).code == 0);
  CHECK(site.count("status = 'replayed'") == "2");
  CHECK(site.run({"dlq", "replay", "--all", "--reason", "conflict"}).code == 0);
  CHECK(site.count("status = 'replayed'") == "2");
  CHECK(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.count("status = 'replayed'") == "3");
  CHECK(site.sql("SELECT count(*) FROM ledger") == "3");
  CHECK(site.sql("SELECT count(*) FROM pawl.idempotency_keys") == "3");

  CHECK(site.run({"dlq", "replay"}).code == 2);
  CHECK(site.run({"dlq", "replay", "1", "--all"}).code == 2);
  CHECK(site.run({"dlq", "replay", "--all", "--limit", "0"}).code == 2);
}

// What the stream may leave out, an operator has asked for.
TEST_CASE("a letter that would be left out stays dead when it is replayed") {
  Failing site("dead-letter");
  site.pay_strangers(1);
  site.drain();
  site.mend();
  const auto expect_failed = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> words{"dlq", "replay", "--all"};
    for (const auto& override : overrides)
      words.insert(words.end(), {"--set", override});
    const auto done = site.run(words);
    INFO(done.out << done.err);
    CHECK(done.code == 1);
    CHECK_THAT(done.out, ContainsSubstring("replayed 0, 1 failed again"));
    CHECK(site.count("status = 'dead'") == "1");
    CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");
  };
  expect_failed({"idempotency.key={header:none}", "idempotency.missing_key=skip"});
  site.handler = "when = 'has({header:none})'\n" + site.handler;
  expect_failed({"failures.unmatched=skip"});
}

TEST_CASE("a letter whose key was processed meanwhile is resolved without effect") {
  Failing site("dead-letter");
  site.pay_strangers(1);
  site.drain();
  site.mend();
  site.pay_strangers(1);
  site.drain();
  REQUIRE(site.sql("SELECT count(*) FROM ledger") == "1");
  const auto replay = site.run({"dlq", "replay", "--all"});
  CHECK(replay.code == 0);
  CHECK_THAT(replay.out, ContainsSubstring("1 already processed"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
  CHECK(site.count("status = 'replayed' AND resolution = 'duplicate'") == "1");
}

TEST_CASE("replays at once, one of them killed, apply each letter once and in order") {
  Failing site("park");
  site.note_order();
  site.pay_strangers(300);
  site.drain();
  REQUIRE(site.count("status = 'parked'") == "299");
  site.mend();
  const auto config = site.config().string();
  {
    ChildProcess killed(PAWL_PROGRAM, {"dlq", "replay", "--all", "--config", config}, {});
    ChildProcess other(PAWL_PROGRAM, {"dlq", "replay", "--all", "--config", config}, {});
    wait_until([&] { return std::stoi(site.count("status = 'replayed'")) > 20; }, kDeadline,
               "some to be replayed");
    killed.kill(SIGKILL);
    killed.wait(kDeadline);
    CHECK(other.wait(kDeadline).code == 0);
  }
  CHECK(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.count("status = 'replayed'") == "300");
  CHECK(site.sql("SELECT count(*) FROM ledger") == "300");
  CHECK(site.out_of_order() == "0");
}

// The consumer parks what comes while a replay of the key runs; neither overtakes the other.
TEST_CASE("replay beside a running consumer keeps the order of the key") {
  Failing site("park");
  site.note_order();
  site.pay_strangers(100);
  site.drain();
  site.mend();
  const auto consumer = site.start();
  int sent = 100;
  while (site.count("status IN ('dead', 'parked')") != "0" || sent < 200) {
    KafkaProducer producer(site.bootstrap);
    for (int i = 0; i < 20; ++i, ++sent) {
      producer.send(site.topic, {.key = "stranger",
                                 .value = R"({"account": "stranger", "amount": 1})",
                                 .headers = {{"event-id", "s" + std::to_string(sent)}},
                                 .partition = 0});
    }
    producer.flush();
    REQUIRE(site.run({"dlq", "replay", "--all"}).code == 0);
    REQUIRE(sent < 5000);
  }
  site.wait_for_stored(0, sent - 1);
  REQUIRE(site.run({"dlq", "replay", "--all"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == std::to_string(sent));
  CHECK(site.out_of_order() == "0");
  consumer->kill(SIGTERM);
  CHECK(consumer->wait(kDeadline).code == 0);
}

TEST_CASE("what is not stored whole is replayed from Kafka, as long as it is there") {
  const std::string option = GENERATE("store_payload = false", "max_payload = \"5B\"");
  CAPTURE(option);
  Failing site("dead-letter");
  site.more += "[dead_letters]\n" + option + "\n";
  site.pay_strangers(2);
  site.drain();
  site.mend();
  const auto replay = site.run({"dlq", "replay", "--all"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "2");

  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger') NOT VALID");
  site.pay_strangers(1, "gone");
  site.drain();
  site.mend();
  KafkaBroker::shared().delete_topic(site.topic);
  const auto gone = site.run({"dlq", "replay", "--all"});
  CHECK(gone.code == 1);
  CHECK_THAT(gone.err, ContainsSubstring("Kafka no longer has the message"));
  CHECK(site.count("status = 'dead'") == "1");
}

TEST_CASE("a message that Kafka could not be asked for is not said to be gone") {
  Failing site("dead-letter");
  site.more += "[dead_letters]\nstore_payload = false\n";
  site.pay_strangers(1);
  site.drain();
  site.mend();
  const auto away =
      site.run({"dlq", "replay", "--all", "--set", "kafka.bootstrap_servers=127.0.0.1:9"});
  INFO(away.out << away.err);
  CHECK(away.code == 1);
  CHECK_THAT(away.err, ContainsSubstring("could not be read from Kafka: ") &&
                           !ContainsSubstring("no longer has the message"));
  CHECK_THAT(away.out, ContainsSubstring("1 not read from Kafka"));
  CHECK(site.count("status = 'dead' AND replays = 0") == "1");
  CHECK(site.run({"dlq", "replay", "--all"}).code == 0);
}

TEST_CASE("discard gives letters up with a reason, and frees a parked key") {
  Failing site("park");
  site.pay_strangers(3);
  site.drain();
  CHECK(site.run({"dlq", "discard", "--all"}).code == 2);
  const auto dry = site.run({"dlq", "discard", "--all", "--because", "test data", "--dry-run"});
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, ContainsSubstring("would discard 3"));
  CHECK(site.count("status IN ('dead', 'parked')") == "3");
  const auto discard = site.run({"dlq", "discard", "--all", "--because", "test data"});
  CHECK(discard.code == 0);
  CHECK_THAT(discard.out, ContainsSubstring("discarded 3 dead letters"));
  CHECK(site.count("status = 'discarded' AND resolution = 'test data'") == "3");
  site.mend();
  site.pay_strangers(1, "later");
  site.drain();
  CHECK(site.sql("SELECT string_agg(event_id, ',') FROM ledger") == "later0");
}

TEST_CASE("export and import keep every byte") {
  Failing site("park");
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, {.key = "k\0\xff"s,
                             .value = "not json \0\x80 at all"s,
                             .headers = {{"event-id", "bad"}, {"bytes", "\xfe\0"s}, {"none", {}}},
                             .partition = 0});
  producer.send(site.topic, {.key = "k\0\xff"s,
                             .value = std::nullopt,
                             .headers = {{"event-id", "behind"}},
                             .partition = 0});
  producer.flush();
  site.drain();
  const auto exported = site.run({"dlq", "export"});
  INFO(exported.out << exported.err);
  REQUIRE(exported.code == 0);
  const std::string whole =
      "SELECT md5(string_agg(to_jsonb(d)::text, ',' ORDER BY kafka_offset)) FROM (SELECT topic, "
      "topic_id, partition, kafka_offset, leader_epoch, timestamp_ms, status, reason, handler, "
      "idempotency_key, sqlstate, statement, error, error_detail, attempts, record_key, "
      "record_key_hash, "
      "record_value, value_bytes, headers, payload FROM pawl.dead_letters) d";
  const auto before = site.sql(whole);
  TempDir folder("export");
  const auto file = folder.path() / "letters.jsonl";
  write_file(file, exported.out);

  const auto again = site.run({"dlq", "import", file.string()});
  CHECK(again.code == 0);
  CHECK_THAT(again.out, ContainsSubstring("imported 0 dead letters, 2 were stored before"));
  site.sql("DELETE FROM pawl.dead_letters");
  site.sql("DELETE FROM pawl.parked_keys");
  CHECK_THAT(site.run({"dlq", "import", file.string(), "--dry-run"}).out,
             ContainsSubstring("would import up to 2"));
  CHECK(site.ids().empty());
  CHECK_THAT(site.run({"dlq", "import", file.string()}).out,
             ContainsSubstring("imported 2 dead letters"));
  CHECK(site.sql(whole) == before);
  CHECK(site.sql("SELECT count(*) FROM pawl.parked_keys") == "1");

  write_file(file, exported.out + "{\"topic\": 5}\n");
  site.sql("DELETE FROM pawl.dead_letters");
  const auto bad = site.run({"dlq", "import", file.string()});
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, ContainsSubstring("letters.jsonl:3:"));
  CHECK(site.ids().empty());
  CHECK(site.run({"dlq", "import", "/does/not/exist"}).code == 2);
}

TEST_CASE("erase removes what a record key's messages carried") {
  Failing site("park");
  site.pay_strangers(2);
  site.pay(0, "bad", "a", "\"much\"");
  site.drain();
  CHECK_THAT(site.run({"dlq", "erase", "--record-key", "stranger", "--dry-run"}).out,
             ContainsSubstring("would erase the payload of 2 dead letters"));
  CHECK(site.count("payload = 'complete'") == "3");
  const auto erase = site.run({"dlq", "erase", "--record-key", "stranger"});
  INFO(erase.out << erase.err);
  CHECK(erase.code == 0);
  CHECK(site.count("payload = 'erased' AND status = 'discarded' AND record_value IS NULL AND "
                   "record_key IS NULL AND headers IS NULL AND error_detail IS NULL") == "2");
  CHECK(site.count("payload = 'complete' AND status = 'dead'") == "1");
  CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters d WHERE d::text LIKE '%stranger%'") ==
        "0");
}

TEST_CASE("dlq list shows scheduled retries, and dlq show cuts a large value") {
  Failing site("retry-later");
  site.pay(0, "bad", "stranger", std::string(5000, ' ') + "1");
  site.drain();
  CHECK_THAT(site.run({"dlq", "list"}).out, ContainsSubstring(" scheduled "));
  const auto id = site.sql("SELECT dead_letter_id FROM pawl.dead_letters");
  const auto cut = site.run({"dlq", "show", id}).out;
  CHECK_THAT(cut, ContainsSubstring("... (cut; --max-bytes ") && !ContainsSubstring(" 1}"));
  CHECK_THAT(site.run({"dlq", "show", id, "--max-bytes", "10000"}).out,
             ContainsSubstring("\"amount\": 1\n"));
  CHECK_THAT(site.run({"dlq", "show", id, "--json"}).out, ContainsSubstring(" 1}"));
}
