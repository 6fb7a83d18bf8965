// Offsets that are used again: by a topic made anew, by a log that was cut and has grown again, by
// an operator who sets a partition back. Dead letters of both messages are kept.
#include <nlohmann/json.hpp>

#include "failing_site.hpp"
#include "prelude.hpp"

namespace {

/// As it says, and with the offsets at hand.
struct Graveyard : Failing {
  explicit Graveyard(const std::string& policy = "dead-letter") : Failing(policy) {}
  void pay_stranger(const std::string& event_id, const std::string& amount) {
    pay(0, event_id, "stranger", amount);
  }
  void set_offset(const std::string& next) {
    const auto set = run({"offsets", "set", "--topic", topic, "--partition", "0", "--to", next,
                          "--because", "test", "--force"});
    INFO(set.out << set.err);
    REQUIRE(set.code == 0);
  }
  /// "OFFSET EVENT AMOUNT STATUS" of each letter, in the order of their ids: from the bytes.
  [[nodiscard]] std::string letters() const {
    return sql(
        "SELECT string_agg(concat_ws(' ', kafka_offset, idempotency_key,"
        "         convert_from(record_value, 'UTF8')::json ->> 'amount', status),"
        "       ', ' ORDER BY dead_letter_id)"
        "  FROM pawl.dead_letters"
        " WHERE convert_from(decode(headers -> 0 ->> 'value', 'base64'), 'UTF8') = "
        "idempotency_key");
  }
  void require_sound_books() {
    for (const bool fast : {true, false}) {
      const auto audit = run(fast ? std::vector<std::string>{"audit", "--fast"}
                                  : std::vector<std::string>{"audit"});
      INFO(audit.out << audit.err);
      CHECK(audit.code == 0);
    }
  }
};

}  // namespace

TEST_CASE("a dead letter of a topic made anew stands beside the one of its offset before") {
  const std::string policy = GENERATE("dead-letter", "park");
  CAPTURE(policy);
  Graveyard site(policy);
  site.pay_stranger("old", "1");
  site.drain();
  KafkaBroker::shared().delete_topic(site.topic);
  KafkaBroker::shared().create_topic(site.topic, 1);
  CHECK_THAT(site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "0",
                       "--dry-run"})
                 .out,
             ContainsSubstring("0 offsets of the new topic delivered, 0 SKIPPED"));
  site.pay_stranger("new", "2");
  site.set_offset("0");
  site.drain();
  const std::string second = policy == "park" ? "parked" : "dead";
  CHECK(site.letters() == "0 old 1 dead, 0 new 2 " + second);
  CHECK(site.sql("SELECT count(DISTINCT topic_id) FROM pawl.dead_letters") == "2");
  site.require_sound_books();

  // Audit is not content with the letter of another message.
  site.sql(
      "CREATE TABLE away AS WITH gone AS (DELETE FROM pawl.dead_letters WHERE idempotency_key = "
      "'new' RETURNING *) SELECT * FROM gone");
  CHECK(site.run({"audit", "--fast"}).code != 0);
  CHECK(site.run({"audit"}).code != 0);
  site.sql("INSERT INTO pawl.dead_letters OVERRIDING SYSTEM VALUE SELECT * FROM away");
  site.require_sound_books();

  site.mend();
  const auto replay = site.run({"dlq", "replay", "--all"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 0);
  CHECK(site.letters() == "0 old 1 replayed, 0 new 2 replayed");
  CHECK(site.sql("SELECT string_agg(event_id || ' ' || amount, ', ' ORDER BY xmin::text::bigint) "
                 "FROM ledger") == "old 1, new 2");
  site.require_sound_books();
}

TEST_CASE("what a topic made anew repeats is counted as delivered, and as duplicates") {
  Graveyard site;
  for (const auto* id : {"same", "gone", "late"})
    site.pay(0, id, "a", "5");
  site.drain();
  KafkaBroker::shared().delete_topic(site.topic);
  KafkaBroker::shared().create_topic(site.topic, 1);
  for (const auto* id : {"same", "new", "late"})
    site.pay(0, id, "a", "5");

  const auto before = site.run({"audit"});
  CHECK(before.code == 3);
  CHECK_THAT(before.out + before.err, ContainsSubstring("so its records were not read"));
  // Keys of before the database was made are not missed by anything that stands in the topic.
  site.sql("UPDATE pawl.idempotency_scopes SET pruned_to = now() - interval '7 days'");
  const auto dry = [&](const std::string& to) {
    return site
        .run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", to, "--dry-run"})
        .out;
  };
  CHECK_THAT(dry("0"), ContainsSubstring("3 offsets of the new topic delivered, 0 SKIPPED") &&
                           ContainsSubstring("messages whose key is stored are duplicates") &&
                           !ContainsSubstring("again") && !ContainsSubstring("Keys from before"));
  CHECK_THAT(dry("2"), ContainsSubstring("1 offset of the new topic delivered, 2 SKIPPED"));

  site.set_offset("0");
  site.drain();
  CHECK(site.sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets") == "2");
  const auto report = nlohmann::json::parse(site.run({"audit", "--json"}).out);
  CHECK(report.at("findings_total") == 0);
}

TEST_CASE("a dead letter of a log that was cut and has grown again stands beside the one before") {
  KafkaBroker broker;
  Graveyard site;
  site.bootstrap = broker.bootstrap();
  site.topic = broker.new_topic("cut", 1);
  const auto id = broker.topic_id(site.topic);
  site.pay(0, "first", "a", "5");
  broker.stop();
  broker.save_log(site.topic, 0);
  broker.start();
  site.pay_stranger("old", "1");
  site.drain();
  broker.stop();
  broker.restore_log(site.topic, 0);
  broker.start();
  site.pay_stranger("new", "2");
  REQUIRE(broker.watermarks(site.topic, 0).high == 2);
  REQUIRE(broker.topic_id(site.topic) == id);
  site.set_offset("1");
  site.drain();
  CHECK(site.letters() == "1 old 1 dead, 1 new 2 dead");
  CHECK(site.sql("SELECT count(DISTINCT topic_id) FROM pawl.dead_letters") == "1");
  site.require_sound_books();
}

TEST_CASE("a message that dies again after the partition was set back keeps its one letter") {
  Graveyard site;
  const std::string payload =
      GENERATE("store_payload = true", "store_payload = false", "max_payload = \"1KiB\"");
  CAPTURE(payload);
  site.more += "[dead_letters]\n" + payload + "\n";
  site.pay_stranger("again", "1");
  site.pay(0, "behind", "a", std::string(2000, ' ') + "5");
  site.pay(0, "large", "stranger", std::string(2000, ' ') + "1");
  site.drain();
  site.set_offset("0");
  // As letters are that were imported without it.
  if (GENERATE(false, true))
    site.sql("UPDATE pawl.dead_letters SET message_digest = NULL");
  site.drain();
  CHECK(
      site.sql("SELECT string_agg(idempotency_key || ' ' || attempts, ', ' ORDER BY kafka_offset) "
               "FROM pawl.dead_letters") == "again 2, large 2");
  site.require_sound_books();
}

TEST_CASE("the head of a parked key that is met again stays the head, with its error") {
  Graveyard site("park");
  site.pay_stranger("head", "1");
  site.pay_stranger("behind", "2");
  site.drain();
  site.set_offset("0");
  site.drain();
  CHECK(site.letters() == "0 head 1 dead, 1 behind 2 parked");
  CHECK(site.sql("SELECT error LIKE '%violates check%' FROM pawl.dead_letters WHERE "
                 "idempotency_key = 'head'") == "t");
  site.require_sound_books();
}

// What stands at the offset now is another message: it is not what the letter is about.
TEST_CASE("a letter without payload is not replayed from a topic made anew") {
  Graveyard site;
  site.more += "[dead_letters]\nstore_payload = false\n";
  site.pay_stranger("old", "1");
  site.drain();
  const auto at = site.sql("SELECT timestamp_ms FROM pawl.dead_letters");
  KafkaBroker::shared().delete_topic(site.topic);
  KafkaBroker::shared().create_topic(site.topic, 1);
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, {.key = "stranger",
                             .value = R"({"account": "a", "amount": 2})",
                             .headers = {{"event-id", "new"}},
                             .partition = 0,
                             .timestamp_ms = std::stoll(at)});
  producer.flush();
  site.mend();
  const auto replay = site.run({"dlq", "replay", "--all"});
  CHECK(replay.code == 1);
  CHECK_THAT(replay.err, ContainsSubstring("Kafka no longer has the message"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "0");
}
