#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "prelude.hpp"
#include "site.hpp"

TEST_CASE(
    "run --drain applies every message once, ends with 0, and a second run finds nothing to do") {
  Site site(3);
  for (int p = 0; p < 3; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 50);
  site.pay(1, "e1-0", "a", "1");  // a producer's duplicate

  const auto first = site.run({"run", "--drain"});
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "150");
  CHECK(site.sql("SELECT balance FROM accounts WHERE id = 'a'") == "150");
  CHECK(site.sql("SELECT sum(duplicate_count) FROM pawl.processed_kafka_offsets") == "1");
  CHECK(site.stored(1) == 50);

  const auto second = site.run({"run", "--drain"});
  CHECK(second.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "150");
}

TEST_CASE("run logs what it starts, where, with which guarantee, and never the password") {
  Site site;
  site.pay_many(0, "e", 3);
  site.url += site.url.find('?') == std::string::npos ? "?password=hunter2" : "&password=hunter2";
  const auto outcome = site.run({"run", "--drain", "--set", "log.level=debug"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, ContainsSubstring(" consumer_started version=") &&
                              ContainsSubstring(" group=" + site.group + " ") &&
                              ContainsSubstring(" topics=" + site.topic + " ") &&
                              ContainsSubstring(" kafka=" + site.bootstrap + " ") &&
                              ContainsSubstring(" postgres=") && ContainsSubstring(" drain=true") &&
                              ContainsSubstring("one transaction of key, effects, and offset") &&
                              ContainsSubstring("pipeline_configured handlers=handler[0]"
                                                " max_transactions=64") &&
                              ContainsSubstring("partition_assigned topic=" + site.topic +
                                                " partition=0 start_offset=0 "));
  CHECK_THAT(outcome.err, !ContainsSubstring("hunter2"));
  CHECK_THAT(outcome.err, !ContainsSubstring("may lose commits"));
  CHECK(outcome.out.empty());
  const auto replayable = site.run(
      {"run", "--drain", "--set", "consumer.durability=replayable", "--set", "log.level=debug"});
  CHECK(replayable.code == 0);
  CHECK_THAT(replayable.err, ContainsSubstring("may lose commits of the last 1000 ms"));
}

TEST_CASE("a log in JSON is one object a line, also for what needs escaping") {
  Site site;
  site.more = "[log]\nformat = \"json\"\nlevel = \"debug\"\n";
  site.pay(0, "quote\" backslash\\ line\nend", "a", "1");
  site.pay(0, "broken", "a", "\"no number\"");
  const auto outcome = site.run({"run", "--drain", "--set", "failures.max_attempts=1"});
  CHECK(outcome.code == 4);

  std::istringstream lines(outcome.err);
  std::map<std::string, nlohmann::json> by_event;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    CHECK(object.at("ts").get<std::string>().ends_with("Z"));
    CHECK(object.contains("level"));
    CHECK(object.at("group") == site.group);
    by_event[object.at("event")] = object;
  }
  CHECK(by_event.contains("consumer_started"));
  CHECK(by_event.at("message_committed").at("idempotency_key") == "quote\" backslash\\ line\nend");
  CHECK(by_event.at("partition_assigned").at("topic") == site.topic);
  CHECK(by_event.at("partition_halted").at("level") == "error");
  CHECK(by_event.at("partition_halted").at("partition") == 0);
  CHECK(by_event.at("attempt_failed").at("offset") == 1);
  CHECK(by_event.contains("consumer_stopped"));
}

TEST_CASE("neither payloads nor keys are in the log at its default level, except a halt's key") {
  Site site;
  site.pay(0, "the-event-id", "account-of-somebody", "1");
  const auto outcome = site.run({"run", "--drain"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err,
             !ContainsSubstring("the-event-id") && !ContainsSubstring("account-of-somebody"));
}

TEST_CASE("run --drain ends with 4 when a partition is halted, and finishes the others") {
  Site site(2);
  site.pay(0, "good", "a", "1");
  site.pay(0, "bad", "a", "\"no number\"");
  site.pay(0, "behind", "a", "1");
  site.pay_many(1, "e", 20);
  const auto outcome = site.run({"run", "--drain", "--set", "failures.max_attempts=2", "--set",
                                 "failures.retry_initial=10ms"});
  CHECK(outcome.code == 4);
  CHECK(site.stored(0) == 0);
  CHECK(site.stored(1) == 19);
  CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets WHERE partition = 0") == "halted");
  CHECK_THAT(outcome.err,
             ContainsSubstring("partition_halted") && ContainsSubstring(" offset=1 ") &&
                 ContainsSubstring("partitions resume") && ContainsSubstring("partitions skip") &&
                 ContainsSubstring("--offset 1 --because TEXT"));
}

TEST_CASE(
    "a database that was restored to before the consumer's first start is told, and no loop") {
  Site site;
  site.topic += "-later";
  const auto child = site.start({"--set", "failures.program_error_retry=100ms"});
  site.wait_for_sql("SELECT count(*) FROM pawl.consumers", "1");
  // As the restored one: the process has its number, and no partition yet.
  site.sql("DELETE FROM pawl.consumers");
  KafkaBroker::shared().create_topic(site.topic, 1);
  site.pay_many(0, "e", 5);
  child->wait_for_output("partition_halted", kDeadline);
  CHECK_THAT(child->output(),
             ContainsSubstring("Restart this process to start as kafka.start specifies") &&
                 !ContainsSubstring("foreign key"));
  CHECK(site.sql("SELECT count(*) FROM ledger") == "0");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline).code == 0);
  const auto again = site.run({"run", "--drain"});
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "5");
}

TEST_CASE("the README's example enters no payment of an account that is not there") {
  Site site;
  const auto example = read_file(PAWL_SOURCE_DIR "/conf/payments.toml");
  site.handler = example.substr(example.find("sql = ["));
  site.pay(0, "e0", "a", "1");
  site.pay(0, "e1", "nobody", "1");
  const auto outcome = site.run({"run", "--drain", "--set", "failures.max_attempts=2", "--set",
                                 "failures.retry_initial=10ms"});
  CHECK(site.sql("SELECT string_agg(event_id, ' ') FROM ledger") == "e0");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.err, ContainsSubstring(" offset=1 ") && ContainsSubstring("expect_rows"));
}

TEST_CASE("the option --set overrides the configuration, also for a group of its own") {
  Site site;
  site.pay_many(0, "e", 2);
  const auto other = "other-" + site.group;
  CHECK(site.run({"run", "--drain", "--set", "kafka.group=" + other}).code == 0);
  CHECK(site.sql("SELECT group_id FROM pawl.consumers") == other);
}

TEST_CASE("run ends with 1 and the command to run when the schema is missing") {
  Site site;
  site.url = PostgresServer::shared().create_empty_database("cli");
  const auto outcome = site.run({"run"});
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, ContainsSubstring("pawl migrate up --config /"));
}

TEST_CASE(
    "an outage of PostgreSQL is logged once, not once per worker or cause, and so is its end") {
  PostgresServer server;
  Site site(4);
  site.url = server.create_database("outage");
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql(
      "CREATE TABLE accounts (id text PRIMARY KEY, balance bigint DEFAULT 0, entries bigint "
      "DEFAULT 0)");
  for (int p = 0; p < 4; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 5);
  const auto child = site.start();
  site.wait_for_sql("SELECT count(*) FROM ledger", "20");

  server.stop(StopMode::kImmediate);
  child->wait_for_output("database_unreachable", kDeadline);
  server.start();
  child->wait_for_output("database_reachable", kDeadline);
  site.pay_many(0, "later-", 5);
  site.wait_for_sql("SELECT count(*) FROM ledger", "25");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});

  const auto log = child->output();
  INFO(log);
  CHECK(occurrences(log, " database_unreachable: ") == 1);
  CHECK(occurrences(log, " database_reachable outage_s=") == 1);
}

TEST_CASE(
    "an outage at the start is logged once, with its end, and progress lines name its cause") {
  PostgresServer server;
  KafkaBroker broker;
  Site site(broker, server);
  site.more = "[log]\nprogress_interval = \"500ms\"\n";
  site.pay_many(0, "e", 5);
  server.stop();
  broker.kill();
  const auto child = site.start();
  child->wait_for_output("PostgreSQL is unreachable: ", kDeadline);
  server.start();
  child->wait_for_output(" database_reachable outage_s=", kDeadline);
  child->wait_for_output("Kafka is unreachable: ", kDeadline);
  broker.start();
  child->wait_for_output(" kafka_reachable outage_s=", kDeadline);
  site.wait_for_stored(0, 4);
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});

  const auto log = child->output();
  INFO(log);
  CHECK(occurrences(log, " database_unreachable: ") == 1);
  CHECK(occurrences(log, " database_reachable outage_s=") == 1);
  CHECK(occurrences(log, " kafka_unreachable: ") == 1);
  CHECK(occurrences(log, " kafka_reachable outage_s=") == 1);
  CHECK(occurrences(log, " kafka_unreachable_repeats=") > 0);
}
