// Consumers, and processes of one consumer, that work beside each other in one database.
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "prelude.hpp"
#include "site.hpp"

namespace {

const std::string kBalance = "SELECT balance FROM accounts WHERE id = 'a'";

/// A site whose messages are processed by its group, and a second name for the same work.
struct Twice : Site {
  explicit Twice(int partitions = 1) : Site(partitions) {
    // Nothing of the application's own keeps a payment from being entered twice.
    sql("ALTER TABLE ledger DROP CONSTRAINT ledger_pkey");
    pay_many(0, "e", 10);
    const auto first = run({"run", "--drain"});
    INFO(first.err);
    REQUIRE(first.code == 0);
  }
  [[nodiscard]] std::string first_name() const { return "default/" + group; }
};

}  // namespace

TEST_CASE("a consumer with a wrong name does nothing again until it is told to") {
  const auto start = GENERATE(as<std::string>{}, "committed", "earliest", "2026-01-31T00:00:00Z");
  INFO(start);
  Twice site(2);
  const auto first = site.first_name();
  const auto as_other = [&](std::vector<std::string> arguments) {
    for (const auto& option : {"kafka.group=typo-" + site.group, "kafka.start=" + start}) {
      arguments.emplace_back("--set");
      arguments.push_back(option);
    }
    return site.run(arguments);
  };
  const auto refused = as_other({"run", "--drain"});
  INFO(refused.err);
  CHECK(refused.code == 4);
  CHECK(site.sql(kBalance) == "10");
  CHECK_THAT(refused.err, ContainsSubstring(first + " ([0] up to offset 9") &&
                              ContainsSubstring("kafka.known_consumers = [\"" + first + "\"]") &&
                              ContainsSubstring("offsets set"));
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets") == "2");

  const auto check = as_other({"check"});
  CHECK(check.code == 1);
  CHECK_THAT(check.out, ContainsSubstring(first) && ContainsSubstring("known_consumers"));
}

TEST_CASE("another name for the Kafka cluster does nothing again either") {
  Twice site;
  const auto refused = site.run({"run", "--drain", "--set", "kafka.cluster=typo"});
  CHECK(refused.code == 4);
  const auto both = site.run(
      {"run", "--drain", "--set", "kafka.cluster=typo", "--set", "kafka.group=typo-" + site.group});
  CHECK(both.code == 4);
  CHECK_THAT(both.err, ContainsSubstring(site.first_name() + " ([0] up to offset 9"));
  CHECK(site.sql(kBalance) == "10");
}

TEST_CASE("several consumers of one topic are said to be meant, or begin where they are put") {
  Twice site;
  const auto other = "other-" + site.group;
  SECTION("by name") {
    const auto name = GENERATE(as<std::string>{}, "group", "cluster/group");
    site.kafka_lines = "known_consumers = [\"" +
                       (name == "group" ? site.group : site.first_name()) + "\", \"nobody\"]\n";
    CHECK(site.run({"run", "--drain", "--set", "kafka.group=" + other}).code == 0);
    CHECK(site.sql(kBalance) == "20");
  }
  SECTION("by a position") {
    CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "7", "--set",
                    "kafka.group=" + other})
              .code == 0);
    CHECK(site.run({"run", "--drain", "--set", "kafka.group=" + other}).code == 0);
    CHECK(site.sql(kBalance) == "13");
  }
  SECTION("at the log's end") {
    CHECK(
        site.run({"run", "--drain", "--set", "kafka.group=" + other, "--set", "kafka.start=latest"})
            .code == 0);
    CHECK(site.sql(kBalance) == "10");
  }
  SECTION("of a topic that was made anew since") {
    auto& broker = KafkaBroker::shared();
    broker.delete_topic(site.topic);
    broker.create_topic(site.topic, 1);
    site.pay_many(0, "new", 2);
    CHECK(site.run({"run", "--drain", "--set", "kafka.group=" + other}).code == 0);
    CHECK(site.sql(kBalance) == "12");
  }
}

TEST_CASE("status tells of a topic that was refused at first contact beside one that goes on") {
  Twice site(2);
  auto& broker = KafkaBroker::shared();
  const auto own = broker.new_topic("own", 2);
  KafkaProducer producer(site.bootstrap);
  producer.send(own, {.key = "a",
                      .value = R"({"account": "a", "amount": 1})",
                      .headers = {{"event-id", "own-0"}},
                      .partition = 0});
  producer.flush();
  site.handler = "sql = [\"SELECT 1\"]\n\n[[handler]]\ntopics = [\"" + own + "\"]\n" + site.handler;

  const auto as_other = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--set", "kafka.group=other-" + site.group});
    return site.run(std::move(arguments));
  };
  const auto child = site.start({"--set", "kafka.group=other-" + site.group});
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE topic = '" + own +
                        "' AND NOT released",
                    "2");
  site.wait_for_sql(
      "SELECT sum(applied_count) FROM pawl.processed_kafka_offsets WHERE topic = '" + own + "'",
      "1");
  child->wait_for_output("known_consumers", kDeadline);

  const auto json = nlohmann::json::parse(as_other({"status", "--json"}).out);
  CHECK(json.at("totals").at("partitions") == 4);
  CHECK(json.at("totals").at("unowned") == 2);
  CHECK(json.at("totals").at("lag").is_null());
  std::size_t refused = 0;
  for (const auto& partition : json.at("partitions")) {
    INFO(partition.dump());
    const bool is_refused = partition.at("topic") == site.topic;
    CHECK(partition.at("concern") == (is_refused ? "unowned" : "none"));
    CHECK(partition.contains("offset") == !is_refused);
    CHECK(partition.at("end").is_number());
    refused += is_refused ? 1 : 0;
  }
  CHECK(refused == 2);
  CHECK(as_other({"status", "--exit-code"}).code == 3);
  CHECK(as_other({"status", "--fail-on", "unowned,stalled"}).code == 3);
  CHECK_THAT(as_other({"status"}).out,
             ContainsSubstring("2 unowned") &&
                 ContainsSubstring("No offset is stored for " + site.topic + ".") &&
                 !ContainsSubstring("No offset is stored for " + own));

  // A partition that was added, and that nobody has met, is not the whole topic.
  child->kill(SIGTERM);
  REQUIRE(child->wait(kDeadline).code == 0);
  site.handler = "sql = [\"SELECT 1\"]\n";
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  broker.add_partitions(site.topic, 3);
  wait_until(
      [&] {
        const auto grown = nlohmann::json::parse(site.run({"status", "--json"}).out);
        return grown.at("partitions").size() == 3;
      },
      kDeadline, "the partition that nobody has met");
  const auto grown = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK(grown.at("partitions")[2].at("concern") == "unowned");
  CHECK(grown.at("totals").at("unowned") == 3);  // it has drained and gone
  CHECK(site.run({"status", "--exit-code"}).code == 0);
}

TEST_CASE("check shows where partitions start, and why") {
  Site site(3);
  for (int p = 0; p < 3; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 10);
  KafkaBroker::shared().commit_offsets(site.group, site.topic, {{1, 7}});
  const auto committed = site.run({"check"});
  INFO(committed.out);
  CHECK(committed.code == 0);
  CHECK_THAT(committed.out,
             ContainsSubstring("Start           info  " + site.topic +
                               "[0,2] start at offset 0: the log's start: the group has committed "
                               "nothing here\n") &&
                 ContainsSubstring("Start           info  " + site.topic +
                                   "[1] starts at offset 7: committed by the group\n"));
  CHECK_THAT(site.run({"check", "--set", "kafka.start=latest"}).out,
             ContainsSubstring(site.topic + "[0-2] start at offset 10: the log's end\n"));
  CHECK_THAT(site.run({"check", "--set", "kafka.start=halt"}).out,
             ContainsSubstring("offsets set"));
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK_THAT(site.run({"check"}).out, !ContainsSubstring("Start           info"));
}

TEST_CASE("two processes that handle a topic in different ways say so, and no more when one ends") {
  Site site(2);
  const TempDir folder("alerts");
  const auto alerts = folder.path() / "alerts";
  site.more = "[alerts]\ncommand = [\"/bin/sh\", \"-c\", \"cat >>" + alerts.string() + "\"]\n";
  site.pay_many(0, "e", 5);
  site.pay_many(1, "f", 5);
  const auto one = site.start();
  site.wait_for_stored(0, 4);
  site.wait_for_stored(1, 4);
  // The same configuration beside it is no matter.
  const auto same = site.start({"--set", "consumer.pipeline=1"});
  site.wait_for_sql("SELECT count(DISTINCT owner) FROM pawl.processes", "2");
  CHECK(nlohmann::json::parse(site.run({"status", "--json"}).out).at("handlers_differ").empty());
  same->kill(SIGTERM);
  REQUIRE(same->wait(kDeadline).code == 0);

  const auto other = site.start({"--set", "idempotency.conflict=ignore"});
  other->wait_for_output("other keys", kDeadline);
  one->wait_for_output("other keys", kDeadline);
  const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
  REQUIRE(status.at("handlers_differ").size() == 1);
  const auto& differ = status.at("handlers_differ")[0];
  CHECK(differ.at("topic") == site.topic);
  CHECK(differ.at("differs") == "keys");
  CHECK(differ.at("processes").size() == 2);
  CHECK_THAT(site.run({"status"}).out,
             ContainsSubstring("Processes handle this topic differently"));
  wait_until([&] { return read_file(alerts).find("handlers-differ") != std::string::npos; },
             kDeadline, "an alert");

  other->kill(SIGTERM);
  REQUIRE(other->wait(kDeadline).code == 0);
  site.wait_for_sql("SELECT count(DISTINCT owner) FROM pawl.processes", "1");
  CHECK(nlohmann::json::parse(site.run({"status", "--json"}).out).at("handlers_differ").empty());
  one->kill(SIGTERM);
  REQUIRE(one->wait(kDeadline).code == 0);
  CHECK(site.sql("SELECT count(*) FROM pawl.processes") == "0");
}
