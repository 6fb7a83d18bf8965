#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <regex>
#include <sstream>
#include <system_error>

#include "json_schema.hpp"
#include "prelude.hpp"
#include "site.hpp"

namespace {

const std::vector<std::string> kDeadLetters{"--set", "failures.on_failure=dead-letter", "--set",
                                            "failures.max_attempts=1"};

Outcome run_with(Site& site, std::vector<std::string> arguments,
                 const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return site.run(std::move(arguments));
}

/// Of one sample, unless `more` says otherwise.
nlohmann::json status_of(Site& site, const std::vector<std::string>& more = {"--interval", "0s"}) {
  return nlohmann::json::parse(run_with(site, {"status", "--json"}, more).out);
}

/// `pawl status --watch` beside a test, and the objects that it has printed.
class Watch {
 public:
  explicit Watch(Site& site, const std::string& interval = "100ms")
      : child_(PAWL_PROGRAM,
               {"status", "--watch", interval, "--json", "--config", site.config().string()},
               {.environment = {},
                .output = folder_.path() / "out",
                .errors = folder_.path() / "err",
                .working_directory = {}}) {}

  ChildProcess& child() { return child_; }

  void wait_for(const std::function<bool(const nlohmann::json&)>& wanted, const std::string& what) {
    wait_until(
        [&] {
          const auto text = child_.output();
          const auto end = text.rfind('\n');
          if (end == std::string::npos || end == 0)
            return false;
          const auto begin = text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
          const auto line = text.substr(begin, end - begin);
          require_schema({"status"}, line);
          return wanted(nlohmann::json::parse(line));
        },
        kDeadline, what);
  }

 private:
  TempDir folder_{"watch"};
  ChildProcess child_;
};

}  // namespace

TEST_CASE("status shows lag, owner, halts with their reason, and dead letters by handler") {
  Site site(3);
  site.pay_many(2, "e", 10);
  site.pay(0, "dead", "a", "\"no number\"");
  REQUIRE(run_with(site, {"run", "--drain"}, kDeadLetters).code == 0);
  site.pay(1, "halting", "a", "\"no number\"");
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets WHERE partition = 1", "halted");
  site.wait_for_sql("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE NOT released", "3");

  const auto json = status_of(site);
  CHECK(json.at("totals").at("partitions") == 3);
  CHECK(json.at("totals").at("halted") == 1);
  CHECK(json.at("totals").at("unowned") == 0);
  CHECK(json.at("totals").at("dead_letters") == 1);
  CHECK(json.at("totals").at("lag") == 1);
  const auto& halted = json.at("partitions")[1];
  CHECK(halted.at("concern") == "halted");
  CHECK(halted.at("lag") == 1);
  CHECK(halted.at("halt_code") == "message_failed");
  CHECK(halted.at("halt_parameters").at("sqlstate") == "22P02");
  CHECK(halted.at("halt_parameters").at("statement") == "sql[0]");
  CHECK_THAT(halted.at("halt_cause").get<std::string>(), ContainsSubstring("invalid input syntax"));
  CHECK(halted.at("message_offset") == 0);
  CHECK(json.at("partitions")[2].at("message_offset").is_null());
  CHECK(halted.at("owner").get<std::string>().find(std::to_string(child->pid())) !=
        std::string::npos);
  CHECK(json.at("partitions")[2].at("offset") == 10);
  REQUIRE(json.at("dead_letters").size() == 1);
  CHECK(json.at("dead_letters")[0].at("reason") == "error");
  CHECK(json.at("server").at("consumer_connections").get<int>() > 0);

  const auto screen = site.run({"status"});
  INFO(screen.out << screen.err);
  CHECK(screen.code == 0);
  CHECK_THAT(screen.out, StartsWith(site.group + "   1 of 3 partitions halted ") &&
                             ContainsSubstring("\nHALTED\n  " + site.topic + "[1]@0 ") &&
                             ContainsSubstring("1 dead letter") &&
                             ContainsSubstring("partitions skip") && ContainsSubstring("dlq list"));
}

TEST_CASE("status --exit-code is 0 when all is well, 3 when somebody is needed") {
  Site site(2);
  site.pay(0, "dead", "a", "\"no number\"");
  REQUIRE(run_with(site, {"run", "--drain"}, kDeadLetters).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  CHECK(site.run({"status", "--fail-on", "halted"}).code == 0);
  CHECK(site.run({"status", "--fail-on", "dead-letters"}).code == 3);
  CHECK(site.run({"status", "--fail-on", "halted,unowned"}).code == 3);  // it has drained and gone

  site.pay(1, "halting", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1"}).code == 4);
  CHECK(site.run({"status"}).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 3);
  CHECK(site.run({"status", "--json", "--fail-on", "dead-letters"}).code == 3);
}

TEST_CASE("status and check name the halt that the next start causes") {
  Site site;
  auto& kafka = KafkaBroker::shared();
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  std::string code;
  SECTION("the topic was recreated") {
    kafka.delete_topic(site.topic);
    kafka.create_topic(site.topic, 1);
    code = "topic_recreated";
  }
  SECTION("Kafka removed messages that were not processed") {
    site.pay_many(0, "e", 3);
    kafka.delete_records(site.topic, 0, 2);
    code = "log_start_moved";
  }
  SECTION("the log ends before the stored offset") {
    REQUIRE(site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "7",
                      "--force", "--because", "test"})
                .code == 0);
    code = "log_truncated";
  }
  const auto screen = site.run({"status", "--exit-code"});
  INFO(screen.out << screen.err);
  CHECK(screen.code == 3);
  CHECK_THAT(screen.out, ContainsSubstring("1 will halt") &&
                             ContainsSubstring("\nWILL HALT\n  " + site.topic + "[0]\n") &&
                             ContainsSubstring(" offsets set "));
  CHECK(status_of(site).at("partitions")[0].at("pending_halt").at("code") == code);
  const auto check = site.run({"check"});
  CHECK(check.code == 1);
  CHECK_THAT(check.out,
             ContainsSubstring(site.topic + "[0] will halt, at the latest when a process acquires "
                                            "it: "));

  REQUIRE(site.run({"run", "--drain"}).code == 4);
  CHECK(site.sql("SELECT halt_code FROM pawl.processed_kafka_offsets") == code);
  CHECK(status_of(site).at("partitions")[0].at("pending_halt").is_null());
  CHECK_THAT(site.run({"status"}).out,
             ContainsSubstring("\nHALTED\n") && !ContainsSubstring("WILL HALT"));
}

TEST_CASE("an offset within an open transaction is no halt of the next start") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  // The stable end stays before the open transaction.
  KafkaProducer producer(site.bootstrap, site.group);
  producer.begin();
  producer.send(site.topic, {.value = "open", .partition = 0});
  producer.flush();
  REQUIRE(site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "1",
                    "--force", "--because", "test"})
              .code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  CHECK(site.run({"check"}).code == 0);
  producer.abort();
}

TEST_CASE("status shows what messages of live processes wait for") {
  Site site(1);
  site.pay_many(0, "e", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  site.sql(
      "INSERT INTO pawl.process_conditions (consumer_id, owner, conditions) SELECT consumer_id, "
      "'host:1:ab', '[{\"kind\": \"partition_blocked\", \"subject\": \"t[3]\", \"topic\": \"t\", "
      "\"partition\": 3, \"since_ms\": 1800000000000, \"messages\": 7, \"cause\": \"session "
      "42\", \"blocking_pid\": 42}]' "
      "FROM pawl.consumers");
  const auto conditions = [&] { return status_of(site).at("conditions"); };
  CHECK(conditions() == nlohmann::json::parse(
                            R"([{"kind": "partition_blocked", "subject": "t[3]", "messages": 7,
                                 "since": "2027-01-15T08:00:00Z", "cause": "session 42",
                                 "lasting": true, "blocking_pid": 42,
                                 "process": "host:1:ab"}])"));
  const auto seen = site.run({"status", "--exit-code"});
  CHECK(seen.code == 3);
  CHECK_THAT(seen.out,
             ContainsSubstring("1 partition blocked by a lock") &&
                 ContainsSubstring("t[3] has waited for a lock since 2027-01-15T08:00:00Z: "
                                   "session 42. 7 messages wait") &&
                 ContainsSubstring("Reported by host:1:ab.") &&
                 ContainsSubstring("-c 'SELECT pg_terminate_backend(42)'\n"));
  CHECK(status_of(site).at("totals").at("blocked") == 0);
  // Of a partition that the consumer has.
  site.sql("UPDATE pawl.processed_kafka_offsets SET released = false, owner_pid = NULL");
  site.sql(
      "UPDATE pawl.process_conditions SET conditions = jsonb_set(jsonb_set(conditions, "
      "'{0,topic}', to_jsonb('" +
      site.topic + "'::text)), '{0,partition}', '0')");
  CHECK(status_of(site).at("totals").at("blocked") == 1);
  CHECK(status_of(site).at("partitions")[0].at("concern") == "blocked");
  CHECK(site.run({"status", "--fail-on", "blocked"}).code == 3);
  // Its process has not been heard of for long.
  site.sql("UPDATE pawl.process_conditions SET seen_at = seen_at - interval '1 minute'");
  CHECK(conditions().empty());
  CHECK(site.run({"status", "--exit-code"}).code == 0);
}

TEST_CASE("stalled is what a message has waited for, not what was idle before one came") {
  Site site(2);
  KafkaProducer producer(site.bootstrap);
  const auto pay_before = [&](std::chrono::seconds age, const std::string& event_id) {
    const auto at = std::chrono::system_clock::now().time_since_epoch() - age;
    producer.send(site.topic,
                  {.key = "a",
                   .value = R"({"account": "a", "amount": 1})",
                   .headers = {{"event-id", event_id}},
                   .partition = 1,
                   .timestamp_ms = std::chrono::floor<std::chrono::milliseconds>(at).count()});
    producer.flush();
  };
  site.pay_many(0, "e", 1);
  pay_before(2min, "f0");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  // As of an owner without a session of its own, behind a pooler, in an idle hour.
  site.sql(
      "UPDATE pawl.processed_kafka_offsets SET released = false, owner_pid = NULL, "
      "updated_at = clock_timestamp() - interval '1 hour'");
  CHECK(site.run({"status", "--fail-on", "stalled"}).code == 0);
  site.pay(0, "new", "a", "1");
  CHECK(status_of(site).at("totals").at("lag") == 1);
  CHECK(site.run({"status", "--fail-on", "stalled"}).code == 0);
  pay_before(90s, "f1");
  CHECK(site.run({"status", "--fail-on", "stalled"}).code == 3);
  const auto json = status_of(site);
  // The message is 90 s old, and older on a busy machine.
  CHECK(json.at("oldest_unprocessed").at("partition") == 1);
  CHECK(json.at("oldest_unprocessed").at("age_seconds").get<int>() >= 80);
  CHECK_THAT(site.run({"status"}).out,
             ContainsSubstring("   oldest unprocessed ") && ContainsSubstring(site.topic + "[1])"));
  CHECK(json.at("totals").at("stalled") == 1);
  CHECK(json.at("partitions")[0].at("concern") == "none");
  CHECK(json.at("partitions")[1].at("concern") == "stalled");
  site.sql(
      "UPDATE pawl.processed_kafka_offsets SET attempts = 1, "
      "attempts_offset = last_processed_offset + 1 WHERE partition = 1");
  CHECK(site.run({"status", "--fail-on", "stalled,probation"}).code == 0);
  CHECK(site.run({"status", "--fail-on", "retrying"}).code == 3);
}

TEST_CASE("status --exit-code is 3 where a topic of the configuration does not exist") {
  Site site;
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"status", "--exit-code"}).code == 0);
  site.more = "[[handler]]\ntopics = ['no-such-topic']\nsql = [\"SELECT 1\"]\n";
  const auto outcome = site.run({"status", "--exit-code"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.out,
             ContainsSubstring("1 topic missing") &&
                 ContainsSubstring("no-such-topic does not exist in Kafka. Create it"));
}

TEST_CASE("a bad call of status ends with 2 and says what is wrong") {
  Site site;
  CHECK(site.run({"status", "--fail-on", "rain"}).code == 2);
  const auto watch = site.run({"status", "--watch", "soon"});
  CHECK(watch.code == 2);
  CHECK_THAT(watch.err, ContainsSubstring("from 100ms to 1h"));
  CHECK(site.run({"status", "--watch", "1s", "--exit-code"}).code == 2);
}

TEST_CASE("status of a consumer that has never run says so") {
  Site site;
  const auto outcome = site.run({"status"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("never run against this database"));
  // Nobody processes anything there, which is what a script asks.
  CHECK(site.run({"status", "--exit-code"}).code == 3);
  CHECK(site.run({"status", "--fail-on", "unowned"}).code == 3);
  CHECK(site.run({"status", "--fail-on", "dead-letters"}).code == 3);
  const auto json = status_of(site);
  CHECK(json.at("totals").at("unowned") == 1);
  CHECK(json.at("partitions")[0].at("concern") == "unowned");
}

TEST_CASE("status in JSON says null for what only PostgreSQL knows, while that is away") {
  Site site(2);
  site.url = "postgresql://postgres@127.0.0.1:9/nothing";
  const auto outcome = site.run({"status", "--json"});
  CHECK(outcome.code == 1);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("postgres_problem").is_string());
  const auto& totals = json.at("totals");
  CHECK(totals.at("partitions") == 2);
  for (const auto* name :
       {"halted", "paused", "unowned", "stalled", "lag", "dead_letters", "parked_messages"}) {
    INFO(name);
    CHECK(totals.at(name).is_null());
  }
  CHECK(json.at("partitions")[0].at("concern").is_null());

  site.bootstrap = "127.0.0.1:9";
  const auto nothing = nlohmann::json::parse(site.run({"status", "--json"}).out);
  CHECK(nothing.at("totals").at("partitions").is_null());
}

TEST_CASE("a database that answers and cannot be used is not one that does not answer") {
  Site site;
  const std::vector<std::string> without_schema{"--set", "postgres.schema=nothing"};
  const auto schema = run_with(site, {"status"}, without_schema);
  CHECK(schema.code == 1);
  CHECK_THAT(schema.out,
             ContainsSubstring("PostgreSQL cannot be used") && ContainsSubstring("schema version"));
  site.url = site.url.substr(0, site.url.rfind('/')) + "/no_such_database";
  const auto database = site.run({"status"});
  CHECK(database.code == 1);
  CHECK_THAT(database.out, ContainsSubstring("PostgreSQL cannot be used"));
  // One advice, on a line without gaps.
  auto line = database.out.substr(database.out.find("does not exist"));
  line.resize(line.find('\n'));
  CHECK_THAT(line, ContainsSubstring("does not exist. Create the database (`createdb`)") &&
                       !ContainsSubstring("pg_hba.conf") && !ContainsSubstring("  "));
  site.url = "postgresql://postgres@127.0.0.1:9/nothing";
  CHECK_THAT(site.run({"status"}).out,
             ContainsSubstring("PostgreSQL is unreachable") &&
                 ContainsSubstring(". Is the server running? Check postgres.url\n") &&
                 !ContainsSubstring("pg_hba.conf"));
}

TEST_CASE("status shows when a lag is gone, and a watched screen the time") {
  Site site;
  site.handler = "sql = [\"SELECT pg_sleep(0.01)\"]\n";
  site.pay_many(0, "e", 30000);
  const auto child =
      site.start({"--set", "log.progress_interval=500ms", "--set", "log.format=json"});
  site.wait_for_sql("SELECT last_processed_offset > 10 FROM pawl.processed_kafka_offsets", "t");
  const auto json = status_of(site, {});
  CHECK(json.at("totals").at("eta_seconds").get<int>() > 0);
  CHECK(json.at("partitions")[0].at("eta_seconds").get<int>() > 0);
  wait_until([&] { return site.run({"status"}).out.find("caught up in ") != std::string::npos; },
             kDeadline, "status to tell when the lag is gone");
  child->wait_for_output("\"eta_s\":", kDeadline);

  TempDir folder("screen");
  ChildProcess watch(
      PAWL_PROGRAM, {"status", "--watch", "100ms", "--config", site.config().string()},
      {.environment = {}, .output = folder.path() / "out", .errors = {}, .working_directory = {}});
  watch.wait_for_output(" UTC\n", kDeadline);
  CHECK_THAT(watch.output(), StartsWith(site.group + "   "));
}

TEST_CASE("status tells that the owner of a partition is gone when it was killed") {
  Site site;
  site.pay_many(0, "e", 1);
  {
    const auto child = site.start();
    site.wait_for_stored(0, 0);
    CHECK(status_of(site).at("totals").at("unowned") == 0);
    child->kill(SIGKILL);
    child->wait(kDeadline);
  }
  wait_until([&] { return status_of(site).at("totals").at("unowned") == 1; }, kDeadline,
             "the killed owner to be noticed");
  const auto json = status_of(site);
  CHECK(json.at("partitions")[0].at("owner").is_null());
  CHECK(json.at("partitions")[0].at("last_owner").is_string());
}

TEST_CASE("a process without a partition is known to run") {
  Site site;
  site.pay_many(0, "e", 1);
  const auto one = site.start();
  site.wait_for_stored(0, 0);
  const auto other = site.start();
  wait_until([&] { return status_of(site).at("processes").size() == 2; }, kDeadline,
             "both processes to be known");
  for (const auto& child : {one.get(), other.get()}) {
    child->kill(SIGTERM);
    CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  }
  CHECK(status_of(site).at("processes").empty());
}

TEST_CASE("processes that started without Kafka are shown as waiting for it") {
  KafkaBroker broker;
  Site site;
  site.bootstrap = broker.bootstrap();
  broker.create_topic(site.topic, 1);
  site.pay_many(0, "e", 2);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  broker.kill();
  const auto one = site.start();
  const auto other = site.start();
  wait_until(
      [&] {
        const nlohmann::json conditions = status_of(site).at("conditions");
        return conditions.size() == 2 &&
               std::ranges::all_of(conditions, [](const nlohmann::json& condition) {
                 return condition.at("kind") == "kafka_unreachable" &&
                        condition.at("lasting") == true;
               });
      },
      kDeadline, "both processes to be shown as waiting");
  CHECK(status_of(site).at("processes").size() == 2);
  const auto status = site.run({"status", "--exit-code", "--interval", "0s"});
  INFO(status.out);
  CHECK(status.code == 1);  // this command cannot reach Kafka either
  CHECK_THAT(status.out, ContainsSubstring("1 unowned") &&
                             ContainsSubstring("2 processes wait for Kafka since ") &&
                             ContainsSubstring("Do not start another process") &&
                             !ContainsSubstring("pawl run"));

  // The rows of a process that stops while it waits expire.
  one->kill(SIGTERM);
  CHECK(one->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  wait_until(
      [&] {
        const auto left = status_of(site);
        return left.at("processes").size() == 1 && left.at("conditions").size() == 1;
      },
      kDeadline, "the rows of the stopped process to expire");

  broker.start();
  site.pay_many(0, "later-", 1);
  site.wait_for_stored(0, 2);
  wait_until([&] { return status_of(site).at("conditions").empty(); }, kDeadline,
             "the wait to be over in the status");
  CHECK(status_of(site).at("totals").at("unowned") == 0);
  CHECK(status_of(site).at("processes").size() == 1);
  other->kill(SIGTERM);
  CHECK(other->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("a partition whose owner has lost its session with Kafka is shown as unowned") {
  KafkaBroker broker;
  Site site(broker, PostgresServer::shared());
  site.kafka_lines = "session_timeout = \"6s\"\n";
  site.pay_many(0, "e", 2);
  const auto child = site.start();
  site.wait_for_stored(0, 1);
  broker.freeze();
  child->wait_for_output(" partition_revoked ", kDeadline);
  site.wait_for_sql("SELECT released FROM pawl.processed_kafka_offsets", "t");
  const auto lost = status_of(site);
  CHECK(lost.at("totals").at("unowned") == 1);
  CHECK(lost.at("partitions")[0].at("owner").is_null());
  CHECK(lost.at("processes").size() == 1);

  broker.thaw();
  site.pay_many(0, "later-", 1);
  site.wait_for_stored(0, 2);
  CHECK(status_of(site).at("totals").at("unowned") == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "3");
  child->kill(SIGTERM);
  CHECK(child->wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("status counts parked messages and the record keys that wait") {
  Site site;
  site.pay(0, "dead", "a", "\"no number\"");
  site.pay(0, "behind", "a", "1");
  site.pay(0, "other", "b", "1");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.on_failure=park", "--set",
                    "failures.max_attempts=1"})
              .code == 0);
  const auto json = status_of(site);
  CHECK(json.at("totals").at("dead_letters") == 1);
  CHECK(json.at("totals").at("parked_messages") == 1);
  CHECK(json.at("parked_keys") == 1);
  const auto text = site.run({"status"}).out;
  CHECK_THAT(text, ContainsSubstring("Later messages of 1 record key wait for a dead letter"));
  // The command is complete as it is.
  CHECK(std::regex_search(text, std::regex("dlq replay --config [^\n]+ --all  # after the fix\n")));
}

TEST_CASE("status names the session that holds back vacuum, as far as the role may see it") {
  Site site;
  site.pay_many(0, "e", 3);
  pqxx::connection holder(site.url + "?application_name=a-forgotten-report");
  pqxx::transaction<pqxx::isolation_level::repeatable_read> report(holder);
  report.exec("SELECT pg_current_xact_id()");
  REQUIRE(site.run({"run", "--drain"}).code == 0);

  const auto json = status_of(site);
  CHECK(json.at("server").at("all_sessions_visible") == true);
  const auto& worst = json.at("server").at("vacuum_blockers").at(0);
  CHECK(worst.at("application_name") == "a-forgotten-report");
  CHECK(worst.at("name") == std::to_string(holder.backendpid()));
  CHECK(worst.at("state") == "idle in transaction");
  CHECK(worst.at("seconds").is_number());
  CHECK(worst.at("transactions_since").get<int>() >= 3);

  // A role without pg_read_all_stats.
  const auto role = "watcher_" + std::to_string(::getpid());
  site.sql("CREATE ROLE " + role + " LOGIN");
  site.sql("GRANT USAGE ON SCHEMA pawl TO " + role);
  site.sql("GRANT SELECT ON ALL TABLES IN SCHEMA pawl TO " + role);
  auto url = site.url;
  url.replace(url.find("postgres@"), 8, role);
  const std::vector<std::string> as_role{"--set", "postgres.url=" + url};
  const auto less = status_of(site, as_role);
  CHECK(less.at("server").at("all_sessions_visible") == false);
  const auto& seen = less.at("server").at("vacuum_blockers").at(0);
  CHECK(seen.at("application_name") == "a-forgotten-report");
  CHECK(seen.at("seconds").is_null());
  CHECK_THAT(run_with(site, {"status"}, as_role).out,
             ContainsSubstring("GRANT pg_read_all_stats TO " + role + ";\n") &&
                 ContainsSubstring("vacuum not blocked"));
  site.sql("DROP OWNED BY " + role);
  site.sql("DROP ROLE " + role);
}

TEST_CASE("status takes two samples, so that it shows rates") {
  Site site;
  site.pay_many(0, "e", 5);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(status_of(site).at("totals").at("per_second").is_null());
  CHECK(status_of(site, {}).at("totals").at("per_second") == 0.0);
  CHECK(status_of(site, {"--interval", "200ms"}).at("totals").at("per_second") == 0.0);
  CHECK(site.run({"status", "--interval", "50ms"}).code == 2);
}

TEST_CASE("without PostgreSQL status shows Kafka's half, without Kafka the database's; it ends 1") {
  Site site(2);
  site.pay_many(0, "e", 7);
  REQUIRE(site.run({"run", "--drain"}).code == 0);

  const auto no_database = run_with(site, {"status", "--json"},
                                    {"--set", "postgres.url=postgresql://postgres@127.0.0.1:9/x"});
  CHECK(no_database.code == 1);
  const auto kafka_half = nlohmann::json::parse(no_database.out);
  CHECK(kafka_half.at("postgres_problem").is_string());
  CHECK(kafka_half.at("partitions")[0].at("end") == 7);
  CHECK_FALSE(kafka_half.contains("server"));

  const auto no_kafka =
      run_with(site, {"status", "--json"}, {"--set", "kafka.bootstrap_servers=127.0.0.1:9"});
  CHECK(no_kafka.code == 1);
  const auto database_half = nlohmann::json::parse(no_kafka.out);
  CHECK(database_half.at("kafka_problem").is_string());
  CHECK(database_half.at("partitions")[0].at("offset") == 7);
  CHECK(database_half.at("partitions")[0].at("lag").is_null());
}

TEST_CASE("status --watch outlives outages of PostgreSQL and of Kafka, and ends by Ctrl-C with 0") {
  PostgresServer server;
  KafkaBroker broker;
  Site site;
  site.bootstrap = broker.bootstrap();
  broker.create_topic(site.topic, 1);
  site.url = server.create_database("watched");
  site.sql("CREATE TABLE ledger (event_id text PRIMARY KEY, account text, amount bigint)");
  site.sql("CREATE TABLE accounts (id text, balance bigint, entries bigint)");
  site.pay_many(0, "e", 4);
  REQUIRE(site.run({"run", "--drain"}).code == 0);

  Watch watch(site);
  const auto all_there = [](const nlohmann::json& look) {
    return look.at("postgres_problem").is_null() && look.at("kafka_problem").is_null() &&
           look.at("totals").at("per_second").is_number() &&
           look.at("partitions")[0].at("lag") == 0;
  };
  watch.wait_for(all_there, "a whole look");
  server.stop(StopMode::kImmediate);
  watch.wait_for([](const auto& look) { return look.at("postgres_problem").is_string(); },
                 "a look without PostgreSQL");
  server.start();
  watch.wait_for(all_there, "a whole look after PostgreSQL came back");
  broker.kill();
  watch.wait_for(
      [](const auto& look) {
        return look.at("kafka_problem").is_string() && look.at("partitions")[0].at("offset") == 4;
      },
      "a look without Kafka");
  broker.start();
  watch.wait_for(all_there, "a whole look after Kafka came back");

  watch.child().kill(SIGINT);
  CHECK(watch.child().wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("status --watch draws over itself on a terminal, on a screen of its own") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (terminal < 0) {
    // Where /dev/pts is not mounted, as in many a container or chroot.
    SKIP("no pseudo-terminal can be opened here (posix_openpt: "
         << std::generic_category().message(errno) << "); mount devpts on /dev/pts");
  }
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  Site site;
  site.pay_many(0, "e", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  {
    ChildProcess child(
        PAWL_PROGRAM, {"status", "--watch", "100ms", "--config", site.config().string()},
        {.environment = {}, .output = ::ptsname(terminal), .errors = {}, .working_directory = {}});
    std::string drawn;
    wait_until(
        [&] {
          std::array<char, 4096> bytes{};
          const auto count = ::read(terminal, bytes.data(), bytes.size());
          if (count > 0)
            drawn.append(bytes.data(), static_cast<std::size_t>(count));
          return occurrences(drawn, "every 100ms") >= 3;
        },
        kDeadline, "the third drawing");
    CHECK(occurrences(drawn, "\033[?1049h") == 1);
    CHECK(occurrences(drawn, "\033[2J") == 0);
    CHECK(occurrences(drawn, "\033[H") >= 3);
    CHECK(occurrences(drawn, site.group) >= 3);
    child.kill(SIGINT);
    CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
    for (std::array<char, 4096> bytes{};;) {
      const auto count = ::read(terminal, bytes.data(), bytes.size());
      if (count <= 0)
        break;
      drawn.append(bytes.data(), static_cast<std::size_t>(count));
    }
    CHECK_THAT(drawn, EndsWith("\033[?1049l"));
  }
  ::close(terminal);
}

TEST_CASE("status --watch prints blocks where there is no terminal") {
  Site site;
  site.pay_many(0, "e", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  TempDir folder("watch");
  ChildProcess child(
      PAWL_PROGRAM, {"status", "--config", site.config().string(), "--watch", "100ms"},
      {.environment = {}, .output = folder.path() / "out", .errors = {}, .working_directory = {}});
  const auto block = site.group + "   1 partition, not halted";
  wait_until(
      [&] {
        const auto first = child.output().find(block);
        return first != std::string::npos &&
               child.output().find(block, first + 1) != std::string::npos;
      },
      kDeadline, "the second block");
  CHECK_THAT(child.output(), !ContainsSubstring("\033"));
}
