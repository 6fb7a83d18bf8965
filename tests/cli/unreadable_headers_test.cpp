// Records whose headers Kafka's client cannot read: librdkafka reads 100,000 per record.
#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "prelude.hpp"
#include "site.hpp"

namespace {

constexpr int kMostReadable = 100'000;

/// A refund, by the first of so many headers.
Record refund(const std::string& event_id, int headers) {
  Record record{.key = "a", .value = R"({"amount": 1})", .partition = 0};
  record.headers = {{"event-id", event_id}, {"type", "refund"}};
  while (static_cast<int>(record.headers.size()) < headers)
    record.headers.emplace_back("x", "");
  return record;
}

/// Refunds and payments, told apart by a header, in the table `seen`.
struct HeaderSite : Site {
  explicit HeaderSite(const std::string& mode = "", const std::string& policy = "dead-letter") {
    sql("CREATE TABLE seen (event_id text, kind text)");
    const bool batch = mode == "batch = true";
    const auto insert = [&](const std::string& kind) {
      return fmt::format("sql = [\"INSERT INTO seen SELECT {}, '{}'\"]\n{}\n",
                         batch ? "unnest({header:event-id?}::text[])" : "{header:event-id?}", kind,
                         mode);
    };
    handler = "when = '{header:type} == \"refund\"'\n" + insert("refund") +
              fmt::format("[[handler]]\ntopics = [\"{}\"]\n", topic) + insert("payment");
    more = fmt::format("[failures]\nmax_attempts = 1\non_failure = \"{}\"\n", policy);
  }
  void send(const std::vector<Record>& records) const {
    KafkaProducer producer(bootstrap, "", {{"message.max.bytes", "1000000"}});
    for (const auto& record : records)
      producer.send(topic, record);
    producer.flush();
  }
  void drain() {
    const auto done = run({"run", "--drain"});
    INFO(done.err);
    REQUIRE(done.code == 0);
  }
  [[nodiscard]] std::string seen() const {
    return sql("SELECT string_agg(event_id || ' ' || kind, ', ' ORDER BY event_id) FROM seen");
  }
};

}  // namespace

TEST_CASE("a record with more headers than can be read reaches no handler, in any mode") {
  const auto* const mode =
      GENERATE("", "batch = true", "concurrency = 4\norder_by = \"{header:event-id}\"");
  CAPTURE(mode);
  HeaderSite site(mode);
  if (*mode == '\0')
    site.more += fmt::format("[consumer]\npipeline = {}\n", GENERATE(1, 64));
  site.send({refund("1", 2), refund("2", kMostReadable), refund("3", kMostReadable + 1),
             refund("4", 2), refund("5", 2)});
  site.drain();
  CHECK(site.seen() == "1 refund, 2 refund, 4 refund, 5 refund");
  CHECK(site.sql("SELECT concat_ws(' ', kafka_offset, status, reason, handler, headers, payload)"
                 " FROM pawl.dead_letters") == "2 dead undecodable  null complete");
  CHECK(site.sql("SELECT count(*) FROM pawl.dead_letters") == "1");
  CHECK(site.stored(0) == 4);
}

TEST_CASE("no condition, no missing key and no unmatched message is found in what cannot be read") {
  HeaderSite site;
  site.more += "unmatched = \"skip\"\n";
  site.handler =
      "when = '!has({header:type})'\nmissing_key = \"skip\"\n"
      "sql = [\"INSERT INTO seen VALUES ('any', 'any')\"]\n";
  site.send({refund("1", kMostReadable + 1)});
  site.drain();
  CHECK(site.seen().empty());
  CHECK(site.sql("SELECT count(*) FROM pawl.skipped_messages") == "0");
  CHECK(site.sql("SELECT reason FROM pawl.dead_letters") == "undecodable");
}

TEST_CASE("a dead letter whose headers are unknown says so, and is not replayed") {
  HeaderSite site;
  const auto* const stored = GENERATE("true", "false");
  CAPTURE(stored);
  site.more += fmt::format("[dead_letters]\nstore_payload = {}\n", stored);
  site.send({refund("1", kMostReadable + 1)});
  site.drain();
  const auto id = site.sql("SELECT dead_letter_id FROM pawl.dead_letters");

  const auto show = site.run({"dlq", "show", id});
  INFO(show.out << show.err);
  CHECK_THAT(show.out, ContainsSubstring("unknown: Kafka's client cannot read them"));
  CHECK(nlohmann::json::parse(site.run({"dlq", "show", id, "--json"}).out)["headers"].is_null());
  CHECK_THAT(site.run({"dlq", "list"}).out, ContainsSubstring("undecodable"));
  CHECK_THAT(
      site.run({"partitions", "peek", "--topic", site.topic, "--partition", "0", "--offset", "0"})
          .out,
      ContainsSubstring("headers: unknown"));

  const auto replay = site.run({"dlq", "replay", id});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 1);
  CHECK_THAT(replay.err, ContainsSubstring("its headers are unknown") &&
                             ContainsSubstring("dlq discard --because 'headers unknown'"));
  CHECK(site.seen().empty());
  CHECK(site.sql("SELECT status FROM pawl.dead_letters") == "dead");

  // An export keeps that they are unknown.
  const auto exported = site.run({"dlq", "export"});
  CHECK(nlohmann::json::parse(exported.out)["headers"].is_null());
  const TempDir folder("export");
  write_file(folder.path() / "letters", exported.out);
  site.sql("DELETE FROM pawl.dead_letters");
  CHECK(site.run({"dlq", "import", (folder.path() / "letters").string()}).code == 0);
  CHECK(site.sql("SELECT headers FROM pawl.dead_letters") == "null");
  CHECK(site.run({"dlq", "replay", "--all"}).code == 1);
  CHECK(site.seen().empty());
}

TEST_CASE("a partition halts at a record whose headers are unknown, and can be skipped past it") {
  HeaderSite site("", "halt");
  site.send({refund("1", kMostReadable + 1), refund("2", 2)});
  const auto process = site.start();
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'halted'",
                    "1");
  CHECK(site.seen().empty());
  const auto skip = site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0",
                              "--offset", "0", "--because", "headers unknown"});
  INFO(skip.out << skip.err);
  CHECK(skip.code == 0);
  site.wait_for_stored(0, 1);
  CHECK(site.seen() == "2 refund");
  CHECK(site.sql("SELECT headers FROM pawl.skipped_messages") == "null");
  process->kill(SIGTERM);
  process->wait(60s);
}

TEST_CASE("names of headers that are not UTF-8 keep their bytes in dead letters") {
  HeaderSite site;
  const std::string name = "caf\xe9";
  site.handler = "sql = [\"SELECT 1 / ({header:none?}::text IS NOT NULL)::integer\"]\n";
  const auto letters = site.topic + ".dead";
  site.more += fmt::format("[dead_letters]\ntopic = \"{}\"\n", letters);
  KafkaBroker::shared().create_topic(letters, 1);
  site.send({{.key = "a",
              .value = "{}",
              .headers = {{"event-id", "1"}, {name, "latin"}, {"caf\xef\xbf\xbd", "replaced"}},
              .partition = 0}});
  const auto process = site.start();
  site.wait_for_sql("SELECT count(*) FROM pawl.dead_letters WHERE published_at IS NOT NULL", "1");
  const auto fed = read_topic(site.bootstrap, letters);
  REQUIRE(fed.size() == 1);
  CHECK(fed[0].header(name) == "latin");
  CHECK(fed[0].header("caf\xef\xbf\xbd") == "replaced");
  process->kill(SIGTERM);
  process->wait(60s);

  const auto show = site.run({"dlq", "show", "--json",
                              site.sql("SELECT dead_letter_id FROM "
                                       "pawl.dead_letters")});
  INFO(show.out << show.err);
  CHECK(nlohmann::json::parse(show.out)["headers"][1]["name"]["base64"] == "Y2Fm6Q==");
  const auto exported = site.run({"dlq", "export"});
  CHECK(nlohmann::json::parse(exported.out)["headers"][1]["name_base64"] == "Y2Fm6Q==");
}
