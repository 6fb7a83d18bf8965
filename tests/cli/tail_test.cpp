#include <csignal>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <sstream>

#include "json_schema.hpp"
#include "prelude.hpp"
#include "site.hpp"

namespace {

std::vector<nlohmann::json> lines_of(const std::string& output) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line) && !text.eof();)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::unique_ptr<ChildProcess> start_tail(Site& site, const TempDir& folder,
                                         std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"tail", "--interval", "100ms", "--config", site.config().string()});
  return std::make_unique<ChildProcess>(PAWL_PROGRAM, arguments,
                                        ChildOptions{.output = folder.path() / "tail"});
}

}  // namespace

TEST_CASE("tail follows a consumer: owners, messages, a halt, an operator, dead letters") {
  Site site;
  const TempDir folder("tail");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto tail = start_tail(site, folder, {"--json", "--messages"});
  tail->wait_for_output("\"event\":\"tail_started\"", kDeadline);
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  tail->wait_for_output("\"event\":\"acquired\"", kDeadline);
  site.pay_many(0, "e", 3);
  site.pay(0, "bad", "a", "\"no number\"");
  tail->wait_for_output("\"event\":\"halted\"", kDeadline);
  REQUIRE(site.run({"partitions", "skip", "--topic", site.topic, "--partition", "0", "--offset",
                    "3", "--because", "agreed"})
              .code == 0);
  tail->wait_for_output("\"event\":\"skipped\"", kDeadline);
  tail->wait_for_output("\"action\":\"skip\"", kDeadline);
  child->kill(SIGTERM);
  REQUIRE(child->wait(kDeadline).success());
  tail->wait_for_output("\"event\":\"unowned\"", kDeadline);
  const auto other =
      site.start({"--set", "failures.max_attempts=1", "--set", "failures.on_failure=dead-letter"});
  site.pay(0, "worse", "a", "\"no number\"");
  tail->wait_for_output("\"event\":\"dead_letter\"", kDeadline);
  tail->kill(SIGINT);
  CHECK(tail->wait(kDeadline).code == 0);

  const auto lines = lines_of(tail->output());
  std::int64_t messages = 0;
  std::vector<std::int64_t> offsets;
  for (const auto& line : lines) {
    CAPTURE(line.dump());
    if (line.at("event") == "advanced" && line.at("to") <= 3)
      messages += line.at("messages").get<std::int64_t>();
    if (line.at("event") == "message") {
      offsets.push_back(line.at("offset"));
      CHECK(line.at("key") == "a");
      CHECK(line.at("form") == "json");
      CHECK(line.at("handler").is_string());
      CHECK_FALSE(line.contains("value"));
    }
    if (line.at("event") == "halted") {
      CHECK(line.at("halt_code") == "message_failed");
    }
    if (line.at("event") == "skipped") {
      CHECK(line.at("offset") == 3);
      CHECK(line.at("reason") == "agreed");
    }
    if (line.at("event") == "dead_letter") {
      CHECK(line.at("offset") == 4);
    }
  }
  CHECK(messages == 3);
  REQUIRE(offsets.size() >= 3);
  CHECK(std::vector(offsets.begin(), offsets.begin() + 3) == std::vector<std::int64_t>{0, 1, 2});
}

TEST_CASE("tail --messages reads a few of many and reports how many it omits; values on demand") {
  Site site;
  const TempDir folder("tail");
  site.pay_many(0, "e", 500);
  REQUIRE(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "earliest"}).code ==
          0);
  const auto tail = start_tail(site, folder, {"--messages", "--values"});
  tail->wait_for_output("1 partition, not halted", kDeadline);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  tail->wait_for_output("omitted", kDeadline);
  CHECK_THAT(tail->output(), ContainsSubstring(R"({"account": "a", "amount": 1})"));
  tail->kill(SIGINT);
  CHECK(tail->wait(kDeadline).code == 0);
}

TEST_CASE("a dead letter that comes while tail begins has a line of its own") {
  Site site;
  const TempDir folder("tail");
  site.pay(0, "bad", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.on_failure=dead-letter", "--set",
                    "failures.max_attempts=1"})
              .code == 0);
  pqxx::connection connection(site.url);
  pqxx::work holding(connection);
  // What the first line is made of is read up to here.
  holding.exec("LOCK TABLE pawl.outbox_shards");
  const auto tail = start_tail(site, folder, {"--json"});
  site.wait_for_sql(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name = 'pawl command' AND wait_event_type = 'Lock'",
      "1");
  holding.exec(
      "INSERT INTO pawl.dead_letters (consumer_id, topic, topic_id, partition, kafka_offset, "
      "timestamp_ms, status, reason, handler, error, record_value, value_bytes, headers, payload) "
      "SELECT consumer_id, topic, topic_id, partition, 1, timestamp_ms, status, reason, handler, "
      "error, record_value, value_bytes, headers, payload FROM pawl.dead_letters");
  holding.commit();
  tail->wait_for_output("\"event\":\"dead_letter\"", kDeadline);
  const auto lines = lines_of(tail->output());
  CHECK(lines.at(0).at("event") == "tail_started");
  CHECK_THAT(lines.at(0).at("verdict").get<std::string>(), ContainsSubstring("2 dead letters"));
  tail->kill(SIGINT);
  CHECK(tail->wait(kDeadline).code == 0);
}

TEST_CASE("a scheduled retry has its number and its due time in tail, and its number in the log") {
  Site site;
  const TempDir folder("tail");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto tail = start_tail(site, folder, {"--json"});
  tail->wait_for_output("\"event\":\"tail_started\"", kDeadline);
  site.more =
      "[failures]\non_failure = \"retry-later\"\nmax_attempts = 1\nretry_later = [\"1h\"]\n";
  site.pay(0, "bad", "a", "\"no number\"");
  const auto drained = site.run({"run", "--drain"});
  CHECK(drained.code == 0);
  const auto id = site.sql("SELECT dead_letter_id FROM pawl.dead_letters");
  CHECK_THAT(drained.err, ContainsSubstring("retry_scheduled ") &&
                              ContainsSubstring(" dead_letter_id=" + id + " "));
  tail->wait_for_output("\"event\":\"scheduled\"", kDeadline);
  tail->kill(SIGINT);
  CHECK(tail->wait(kDeadline).code == 0);
  for (const auto& line : lines_of(tail->output())) {
    require_schema({"tail"}, line.dump());
    if (line.at("event") != "scheduled")
      continue;
    CHECK(std::to_string(line.at("id").get<std::int64_t>()) == id);
    CHECK(line.at("retries") == 0);
    CHECK(line.at("sqlstate") == "22P02");
    CHECK(line.at("statement") == "sql[0]");
    CHECK(line.at("due_at") ==
          site.sql("SELECT to_char(due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
                   "FROM pawl.dead_letters"));
  }
}

TEST_CASE("a consumer that tail has not met before is told of from its first dead letter on") {
  Site site;
  const TempDir folder("tail");
  site.pay(0, "bad", "a", "\"no number\"");
  // So slow that the consumer and its letter come between two looks.
  const auto tail =
      std::make_unique<ChildProcess>(PAWL_PROGRAM,
                                     std::vector<std::string>{"tail", "--json", "--interval", "5s",
                                                              "--config", site.config().string()},
                                     ChildOptions{.output = folder.path() / "tail"});
  tail->wait_for_output("\"event\":\"tail_started\"", kDeadline);
  REQUIRE(site.run({"run", "--drain", "--set", "failures.on_failure=dead-letter", "--set",
                    "failures.max_attempts=1"})
              .code == 0);
  tail->wait_for_output("\"event\":\"dead_letter\"", kDeadline);
  tail->kill(SIGINT);
  CHECK(tail->wait(kDeadline).code == 0);
}

TEST_CASE("tail reports that PostgreSQL is unreachable, and continues when it is reachable") {
  PostgresServer postgres;
  Site site(KafkaBroker::shared(), postgres);
  const TempDir folder("tail");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto tail = start_tail(site, folder, {});
  tail->wait_for_output("1 partition, not halted", kDeadline);
  postgres.stop();
  tail->wait_for_output("unreachable: ", kDeadline);
  postgres.start();
  tail->wait_for_output("reachable again", kDeadline);
  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  // Its owner may have been seen before the first message, or with the last one.
  wait_until(
      [&] {
        const auto said = tail->output();
        return said.find("[0]@2 ") != std::string::npos || said.find("-2 ") != std::string::npos;
      },
      kDeadline, "tail to tell the last offset");
  CHECK(tail->running());
}

TEST_CASE("tail --once and --for end by themselves, and what cannot be is refused") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"tail", "--once", "--interval", "100ms"}).code == 0);
  CHECK(site.run({"tail", "--for", "300ms", "--interval", "100ms"}).code == 0);
  CHECK(site.run({"tail", "--once", "--for", "1s"}).code == 2);
  CHECK(site.run({"tail", "--values"}).code == 2);
  CHECK(site.run({"tail", "--partition", "0"}).code == 2);
  CHECK(site.run({"tail", "--interval", "soon"}).code == 2);
}
