#include <fmt/chrono.h>
#include <fmt/format.h>

#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <sstream>

#include "prelude.hpp"
#include "site.hpp"

namespace {

const std::string kHistory =
    "SELECT string_agg(action || ' ' || coalesce(from_offset::text, '-') || '>' ||"
    " to_offset, ', ' ORDER BY history_id) FROM pawl.offset_history";

}  // namespace

TEST_CASE("offsets show prints stored, end, lag and state, as a table and as JSON") {
  Site site(2);
  site.pay_many(0, "e", 10);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.pay_many(0, "later", 4);

  const auto table = site.run({"offsets", "show"});
  INFO(table.out << table.err);
  CHECK(table.code == 0);
  CHECK_THAT(table.out, ContainsSubstring("TOPIC") && ContainsSubstring("OFFSET  END  LAG") &&
                            ContainsSubstring(site.topic) && ContainsSubstring("unowned"));

  const auto json = nlohmann::json::parse(site.run({"offsets", "show", "--json"}).out);
  REQUIRE(json.at("partitions").size() == 2);
  const auto& first = json.at("partitions")[0];
  CHECK(first.at("topic") == site.topic);
  CHECK(first.at("partition") == 0);
  CHECK(first.at("offset") == 10);
  CHECK(first.at("end") == 14);
  CHECK(first.at("lag") == 4);
  CHECK(first.at("state") == "running");
  CHECK(first.at("owner").is_null());
  CHECK(first.at("applied") == 10);
  CHECK(json.at("partitions")[1].at("offset") == 0);
  CHECK(json.at("kafka_problem").is_null());
}

TEST_CASE("offsets show and status say the same of a partition, in the same words") {
  Site site(3);
  site.pay_many(0, "e", 10);
  site.pay(1, "bad", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain", "--set", "failures.max_attempts=1"}).code == 4);
  site.pay_many(0, "later", 4);
  REQUIRE(site.run({"partitions", "pause", "--topic", site.topic, "--partition", "2"}).code == 0);
  const auto bootstrap = site.bootstrap;
  for (const auto& servers : {bootstrap, std::string("127.0.0.1:9")}) {
    site.bootstrap = servers;
    const auto offsets = nlohmann::json::parse(site.run({"offsets", "show", "--json"}).out);
    const auto status = nlohmann::json::parse(site.run({"status", "--json"}).out);
    CHECK(offsets.at("group") == status.at("group"));
    CHECK(offsets.at("kafka_problem").is_null() == status.at("kafka_problem").is_null());
    REQUIRE(offsets.at("partitions").size() == 3);
    REQUIRE(status.at("partitions").size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& one = offsets.at("partitions")[i];
      const auto& other = status.at("partitions")[i];
      for (const auto* member : {"topic",
                                 "partition",
                                 "offset",
                                 "end",
                                 "lag",
                                 "state",
                                 "since",
                                 "operator_reason",
                                 "halt_kind",
                                 "halt_code",
                                 "halt_handler",
                                 "halt_cause",
                                 "halt_parameters",
                                 "message_offset",
                                 "failed_attempts",
                                 "probation",
                                 "owner",
                                 "last_owner",
                                 "owned_since",
                                 "epoch",
                                 "updated_at"}) {
        CAPTURE(servers, i, member);
        CHECK(one.at(member) == other.at(member));
      }
    }
    // What one column of the tables says, the other's does.
    const auto columns = [&](const std::string& screen) {
      std::vector<std::string> rows;
      std::istringstream lines(screen);
      for (std::string line; std::getline(lines, line);) {
        std::istringstream cells(line);
        std::string topic, partition, state, offset, end, lag;
        if (cells >> topic >> partition >> state >> offset >> end >> lag && topic == site.topic)
          rows.push_back(fmt::format("{} {} {} {} {}", partition, state, offset, end, lag));
      }
      return rows;
    };
    const auto rows = columns(site.run({"offsets", "show"}).out);
    CHECK(rows.size() == 3);
    CHECK(rows == columns(site.run({"status", "--partitions"}).out));
  }
}

TEST_CASE("offsets show tells why a partition is halted, and its owner while one runs") {
  Site site;
  site.pay(0, "bad", "a", "\"no number\"");
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");
  const auto table = site.run({"offsets", "show"});
  CHECK_THAT(table.out, ContainsSubstring("halted") &&
                            ContainsSubstring("\n" + site.topic + "[0]@0 is halted since "));
  const auto json = nlohmann::json::parse(site.run({"offsets", "show", "--json"}).out);
  CHECK(json.at("partitions")[0].at("owner").get<std::string>().find(
            std::to_string(child->pid())) != std::string::npos);
  CHECK(json.at("partitions")[0].at("halt_kind") == "message");
}

TEST_CASE("offsets show works while Kafka is down, with the ends unknown") {
  Site site;
  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.bootstrap = "127.0.0.1:9";
  const auto outcome = site.run({"offsets", "show", "--json"});
  CHECK(outcome.code == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("partitions")[0].at("offset") == 3);
  CHECK(json.at("partitions")[0].at("end").is_null());
  CHECK_FALSE(json.at("kafka_problem").is_null());
  CHECK_THAT(outcome.err, ContainsSubstring("Kafka is unreachable"));
}

TEST_CASE(
    "offsets set moves a stopped consumer back; what is delivered again has no second effect") {
  Site site;
  site.pay_many(0, "e", 10);
  REQUIRE(site.run({"run", "--drain"}).code == 0);

  const auto dry = site.run(
      {"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "4", "--dry-run"});
  INFO(dry.out << dry.err);
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, ContainsSubstring("6 offsets delivered again") &&
                          ContainsSubstring("Nothing was changed"));
  CHECK(site.stored(0) == 9);

  const auto set = site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to",
                             "4", "--because", "why not"});
  CHECK(set.code == 0);
  CHECK(site.stored(0) == 3);
  CHECK(site.sql(kHistory) == "first assignment ->0, offsets set 10>4");
  CHECK(site.sql("SELECT base_offset FROM pawl.processed_kafka_offsets") == "4");
  CHECK(site.sql("SELECT reason FROM pawl.offset_history ORDER BY history_id DESC") == "why not");

  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.stored(0) == 9);
  CHECK(site.sql("SELECT balance FROM accounts WHERE id = 'a'") == "10");
  CHECK(site.sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets") == "6");
}

TEST_CASE("offsets set moves a running consumer, which is fenced and goes on from there") {
  Site site;
  site.pay_many(0, "e", 10);
  const auto child = site.start();
  site.wait_for_stored(0, 9);
  const auto epoch = site.sql("SELECT owner_epoch >> 24 FROM pawl.processed_kafka_offsets");
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "earliest"}).code == 0);
  site.wait_for_sql("SELECT duplicate_count FROM pawl.processed_kafka_offsets", "10");
  site.wait_for_stored(0, 9);
  CHECK(std::stol(site.sql("SELECT owner_epoch >> 24 FROM pawl.processed_kafka_offsets")) >=
        std::stol(epoch) + 2);
  site.pay_many(0, "later", 1);
  site.wait_for_stored(0, 10);
  CHECK(site.sql("SELECT balance FROM accounts WHERE id = 'a'") == "11");
}

TEST_CASE("offsets set past a message that halts ends the halt, and says that it is left out") {
  Site site;
  site.pay(0, "bad", "a", "\"no number\"");
  site.pay(0, "good", "a", "1");
  const auto child = site.start({"--set", "failures.max_attempts=1"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");
  const auto set =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "1"});
  CHECK(set.code == 0);
  CHECK_THAT(set.out, ContainsSubstring("1 offset SKIPPED") && ContainsSubstring("the halt ends"));
  site.wait_for_stored(0, 1);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "1");
  CHECK(site.sql("SELECT state FROM pawl.processed_kafka_offsets") == "running");
}

TEST_CASE("offsets set --to-timestamp goes to the first record at or after it") {
  Site site;
  // Young enough for the topic's retention.
  const auto begin = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) -
                     std::chrono::hours(1);
  KafkaProducer producer(site.bootstrap);
  for (int i = 0; i < 5; ++i) {
    const auto at = begin + std::chrono::seconds(i);
    producer.send(site.topic,
                  {.key = "a",
                   .value = R"({"account": "a", "amount": 1})",
                   .headers = {{"event-id", "t" + std::to_string(i)}},
                   .partition = 0,
                   .timestamp_ms = std::chrono::milliseconds(at.time_since_epoch()).count()});
  }
  producer.flush();
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to-timestamp",
                  fmt::format("{:%FT%TZ}", fmt::gmtime(begin + std::chrono::seconds(2)))})
            .code == 0);
  CHECK(site.stored(0) == 1);
  const auto bad =
      site.run({"offsets", "set", "--topic", site.topic, "--all", "--to-timestamp", "yesterday"});
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, ContainsSubstring("RFC 3339"));
}

TEST_CASE("offsets set refuses a position outside of the log, unless forced") {
  Site site;
  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  const auto refused =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "1000"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("0 to 3") && ContainsSubstring("--force"));
  CHECK(site.stored(0) == 2);
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "1000",
                  "--force"})
            .code == 0);
  CHECK(site.stored(0) == 999);
}

TEST_CASE("before the first run, offsets set stores first contact for all partitions and says so") {
  Site site(3);
  for (int p = 0; p < 3; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 10);
  const auto set =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "1", "--to", "7"});
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  CHECK_THAT(set.out, ContainsSubstring("first assignment, by kafka.start"));
  CHECK(site.stored(0) == -1);
  CHECK(site.stored(1) == 6);
  CHECK(site.stored(2) == -1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "23");
}

TEST_CASE(
    "a consumer that halts on kafka.start = \"halt\" begins when offsets set --all says where") {
  Site site(2);
  site.kafka_lines = "start = \"halt\"\n";
  site.pay_many(0, "e", 10);
  const auto child = site.start({"--set", "failures.program_error_retry=500ms"});
  child->wait_for_output("partition_halted", kDeadline);
  CHECK(site.sql("SELECT count(*) FROM pawl.processed_kafka_offsets") == "0");
  const auto one =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "5"});
  CHECK(one.code == 2);
  CHECK_THAT(one.err, ContainsSubstring("--all"));
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "latest"}).code == 0);
  site.wait_for_stored(0, 9);
  site.pay_many(0, "later", 2);
  site.wait_for_stored(0, 11);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "2");
}

TEST_CASE(
    "a register row that somebody removed halts its partition, and offsets set brings it back") {
  Site site(2);
  site.pay_many(0, "e", 10);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("DELETE FROM pawl.processed_kafka_offsets WHERE partition = 0");
  const auto child = site.start({"--set", "failures.program_error_retry=100ms"});
  child->wait_for_output("the stored offset was deleted", kDeadline);
  const auto set =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "10"});
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  site.pay_many(0, "later", 2);
  site.wait_for_stored(0, 11);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "12");
}

// The triggers against it can be disabled.
TEST_CASE("a register row that vanishes under a pipeline ends it there") {
  Site site;
  site.pay_many(0, "e", 10);
  const auto child = site.start({"--set", "failures.program_error_retry=100ms"});
  site.wait_for_stored(0, 9);
  {
    pqxx::connection other(site.url);
    pqxx::work lock(other);
    lock.exec("LOCK TABLE ledger");
    site.pay_many(0, "later", 500);
    site.wait_for_sql(
        "SELECT count(*) FROM pg_locks WHERE relation = 'ledger'::regclass AND NOT granted", "1");
    site.sql(
        "BEGIN; ALTER TABLE pawl.processed_kafka_offsets DISABLE TRIGGER keep_owned_rows;"
        "DELETE FROM pawl.processed_kafka_offsets;"
        "ALTER TABLE pawl.processed_kafka_offsets ENABLE TRIGGER keep_owned_rows; COMMIT");
  }
  child->wait_for_output("the stored offset was deleted", kDeadline);
  // What was on its way to the server with the first one has its effects and its keys.
  CHECK(std::stoi(site.sql("SELECT count(*) FROM ledger")) <= 10 + 32);
  const auto set =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "10"});
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  site.wait_for_stored(0, 509);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "510");
}

TEST_CASE("a partition whose register row is gone asks again when it is due, and not before") {
  Site site(2);
  site.pay_many(0, "e", 1);
  site.pay_many(1, "f", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql("DELETE FROM pawl.processed_kafka_offsets WHERE partition = 0");
  site.sql(R"sql(
      CREATE TABLE asked (partition integer);
      ALTER FUNCTION pawl.acquire RENAME TO acquire_itself;
      CREATE FUNCTION pawl.acquire(c integer, t text, p integer, o text, i integer, b timestamptz)
      RETURNS TABLE (
          epoch bigint, stored_offset bigint, state text, operator_reason text, halt_kind text,
          halt_code text, halt_offset bigint, halt_handler text, halt_cause text,
          halt_parameters jsonb, topic_id text, leader_epoch integer, released boolean,
          previous_owner text, previous_pid integer, previous_backend_start timestamptz,
          fence integer)
      LANGUAGE sql AS $$
          INSERT INTO asked VALUES (p);
          SELECT * FROM pawl.acquire_itself(c, t, p, o, i, b)
      $$)sql");
  const auto child =
      site.start({"--set", "failures.program_error_retry=10m", "--set", "consumer.workers=1"});
  child->wait_for_output("the stored offset was deleted", kDeadline);
  // The same worker, many turns later. (A time that nobody set is that of the machine's start.)
  for (int i = 1; i <= 20; ++i) {
    site.pay_many(1, "later" + std::to_string(i), 1);
    site.wait_for_stored(1, i);
  }
  // Once as it was, and once more behind an attempt to add it as a partition that is new.
  CHECK(std::stoi(site.sql("SELECT count(*) FROM asked WHERE partition = 0")) <= 2);
}

// As after a migration under a running consumer; each time it takes another session.
TEST_CASE("a partition whose acquire finds a stale statement rests before it asks again") {
  Site site(2);
  site.pay_many(0, "e", 1);
  site.pay_many(1, "f", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.sql(R"sql(
      CREATE SEQUENCE asked;
      ALTER FUNCTION pawl.acquire RENAME TO acquire_itself;
      CREATE FUNCTION pawl.acquire(c integer, t text, p integer, o text, i integer, b timestamptz)
      RETURNS TABLE (
          epoch bigint, stored_offset bigint, state text, operator_reason text, halt_kind text,
          halt_code text, halt_offset bigint, halt_handler text, halt_cause text,
          halt_parameters jsonb, topic_id text, leader_epoch integer, released boolean,
          previous_owner text, previous_pid integer, previous_backend_start timestamptz,
          fence integer)
      LANGUAGE plpgsql AS $$
      BEGIN
          IF p = 0 THEN
              PERFORM nextval('asked');
              RAISE 'cached plan must not change result type' USING ERRCODE = '0A000';
          END IF;
          RETURN QUERY SELECT * FROM pawl.acquire_itself(c, t, p, o, i, b);
      END $$)sql");
  const auto child = site.start({"--set", "postgres.retry_max=5m", "--set",
                                 "postgres.retry_initial=5m", "--set", "consumer.workers=1"});
  child->wait_for_output(" acquire_failed ", kDeadline);
  // The same worker, many turns later.
  for (int i = 1; i <= 20; ++i) {
    site.pay_many(1, "later" + std::to_string(i), 1);
    site.wait_for_stored(1, i);
  }
  // The other partition's first acquire takes both along.
  CHECK(std::stoi(site.sql("SELECT last_value FROM asked")) <= 2);
}

TEST_CASE("a waiting consumer never processes what offsets set then states anew") {
  Site site(2);
  site.kafka_lines = "start = \"halt\"\n";
  // Nothing but the position keeps these from being entered twice.
  site.more = "missing_key = \"process\"\nkey = \"{header:none}\"\n";
  site.handler = "sql = [\"INSERT INTO seen (kafka_offset) VALUES ({offset}::bigint)\"]\n";
  site.sql("CREATE TABLE seen (kafka_offset bigint NOT NULL)");
  site.pay_many(1, "e", 10);
  const auto child = site.start({"--set", "failures.program_error_retry=100ms"});
  child->wait_for_output("partition_halted", kDeadline);

  // The command is held up behind first contact, before whatever it does to single partitions.
  site.sql(R"sql(
      CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
          PERFORM pg_advisory_xact_lock(4711);
          RETURN NEW;
      END $$;
      CREATE TRIGGER hold_up BEFORE INSERT ON pawl.offset_history
          FOR EACH ROW WHEN (NEW.action <> 'first assignment') EXECUTE FUNCTION hold_up())sql");
  pqxx::connection holding(site.url);
  pqxx::work lock(holding);
  lock.exec("SELECT pg_advisory_xact_lock(4711)");
  auto command = std::async(std::launch::async, [&] {
    return site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "earliest"});
  });
  site.wait_for_stored(1, 9);
  lock.commit();
  const auto set = command.get();
  INFO(set.out << set.err);
  CHECK(set.code == 0);
  site.pay_many(1, "behind", 1);
  site.wait_for_stored(1, 10);
  CHECK(site.sql("SELECT count(*) FROM seen") == "11");
  CHECK(site.sql("SELECT string_agg(DISTINCT reason, ' ') FROM pawl.offset_history"
                 " WHERE action = 'first assignment'") == "to earliest");
}

TEST_CASE("offsets reset puts all partitions back to kafka.start") {
  Site site(2);
  site.kafka_lines = "start = \"earliest\"\n";
  for (int p = 0; p < 2; ++p)
    site.pay_many(p, "e" + std::to_string(p) + "-", 5);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.run({"offsets", "reset", "--topic", site.topic}).code == 0);
  CHECK(site.stored(0) == -1);
  CHECK(site.stored(1) == -1);
  CHECK(site.run({"offsets", "reset", "--topic", site.topic, "--partition", "1", "--to", "latest"})
            .code == 0);
  CHECK(site.stored(0) == -1);
  CHECK(site.stored(1) == 4);
}

TEST_CASE("offsets set to what a group committed is refused where it has no committed offset") {
  Site site(2);
  site.pay_many(0, "e", 3);
  const auto set = [&](std::vector<std::string> which) {
    which.insert(which.begin(), {"offsets", "set", "--topic", site.topic, "--to", "committed"});
    return site.run(which);
  };
  const auto never = set({"--all"});
  CHECK(never.code == 2);
  CHECK_THAT(never.err, ContainsSubstring("group " + site.group + " has no committed offset") &&
                            ContainsSubstring("[0, 1]") &&
                            ContainsSubstring("pawl offsets set --config /") &&
                            ContainsSubstring("--topic " + site.topic + " --partition 0 --to"));
  CHECK(site.sql("SELECT count(*) FROM pawl.consumers") == "0");
  // A drain commits of the partition that has messages.
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  REQUIRE(
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "0", "--to", "1"}).code ==
      0);
  CHECK(set({"--partition", "0"}).code == 0);
  CHECK(site.stored(0) == 2);
}

TEST_CASE("offsets set explains what does not exist") {
  Site site;
  const auto topic = site.run({"offsets", "set", "--topic", "no-such", "--all", "--to", "0"});
  CHECK(topic.code == 2);
  CHECK_THAT(topic.err, ContainsSubstring("no handler") && ContainsSubstring(site.topic));
  const auto partition =
      site.run({"offsets", "set", "--topic", site.topic, "--partition", "9", "--to", "0"});
  CHECK(partition.code == 2);
  CHECK_THAT(partition.err, ContainsSubstring("0 to 0"));
  const auto target = site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "soon"});
  CHECK(target.code == 2);
  CHECK_THAT(target.err, ContainsSubstring("earliest"));
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--to", "0"}).code == 2);
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all"}).code == 2);
  CHECK(site.sql("SELECT count(*) FROM pawl.consumers") == "0");
}

TEST_CASE("offsets set needs --force and an offset while Kafka is down") {
  Site site;
  site.pay_many(0, "e", 3);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.bootstrap = "127.0.0.1:9";
  const auto refused = site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "1"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, ContainsSubstring("--force"));
  CHECK(site.stored(0) == 2);
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--all", "--to", "1", "--force"}).code ==
        0);
  CHECK(site.stored(0) == 0);
}

TEST_CASE("a partition that appeared after first contact can be set before it is consumed") {
  Site site;
  site.pay_many(0, "e", 1);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  KafkaBroker::shared().add_partitions(site.topic, 2);
  site.pay_many(1, "f", 5);
  CHECK(site.run({"offsets", "set", "--topic", site.topic, "--partition", "1", "--to", "3"}).code ==
        0);
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  CHECK(site.stored(1) == 4);
  CHECK(site.sql("SELECT count(*) FROM ledger") == "3");
}
