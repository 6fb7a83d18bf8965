// The schema changes while a consumer runs: what its sessions have cached of it ends.
#include <fmt/format.h>

#include <algorithm>
#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "pooler.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr auto kDeadline = 60s;

/// A handler that puts `v` of a message into table t.
struct Way {
  std::string name;
  std::string handler;
  std::vector<std::string> arguments = {};
  std::vector<std::string> settings = {};
};

const std::vector<Way>& ways() {
  static const std::string kSql =
      R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v})"])toml";
  static const std::vector<Way> kWays{
      {"single", kSql, {}, {"consumer.pipeline=1"}},
      {"rows counted",
       R"toml(sql = [{ text = "INSERT INTO t VALUES ({header:event-id}, {/v})", expect_rows = 1 }])toml"},
      {"flights", kSql, {}, {"consumer.pipeline=4"}},
      {"side by side", "concurrency = 4\norder_by = \"{header:event-id}\"\n" + kSql},
      {"function", "function = \"store_in_t\""},
      {"prepared in on_connect", "name = \"prepared_insert\"", {"--prepare-insert"}},
      {"prepared in on_connect, side by side",
       "name = \"prepared_insert\"\nconcurrency = 4\norder_by = \"{header:event-id}\"",
       {"--prepare-insert"}},
      {"statements of code", "name = \"statement_insert\"", {}, {"consumer.pipeline=4"}},
      {"pooled", kSql, {}, {"postgres.pooled=true"}},
  };
  return kWays;
}

struct Change {
  std::string name;
  std::string column;  ///< of v, before
  std::string before;  ///< a value that it takes
  std::string ddl;
  std::string after;
  std::string stored;  ///< of `after`, as text in UTC
};

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges{
      // Which a session from before would store without a word, as something else.
      {"timestamp to timestamptz", "timestamp", "2024-01-01T00:00:00",
       "ALTER TABLE t ALTER v TYPE timestamptz USING v AT TIME ZONE 'UTC'",
       "2024-06-01T12:00:00+05:00", "2024-06-01 07:00:00+00"},
      {"real to numeric", "real", "1.5", "ALTER TABLE t ALTER v TYPE numeric", "123456789.12",
       "123456789.12"},
      {"int to text", "int", "12345", "ALTER TABLE t ALTER v TYPE text", "01234", "01234"},
      // Which it would refuse.
      {"int to bigint", "int", "1", "ALTER TABLE t ALTER v TYPE bigint", "5000000000",
       "5000000000"},
      {"text to uuid", "text", "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0001",
       "ALTER TABLE t ALTER v TYPE uuid USING v::uuid", "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0002",
       "5f0c4a34-3a15-4a7e-9a39-0d5b3a1c0002"},
      {"enum replaced", "state", "new",
       "CREATE TYPE new_state AS ENUM ('new', 'void'); ALTER TABLE t ALTER v TYPE new_state USING "
       "v::text::new_state; DROP TYPE state; ALTER TYPE new_state RENAME TO state",
       "void", "void"},
  };
  return kChanges;
}

/// Those behind the first three, which a session from before refuses.
std::vector<Change> refused_changes() {
  return {changes().begin() + 3, changes().end()};
}

class Schema {
 public:
  explicit Schema(const Change& change) : change_(change) {
    world.set_for_database("TimeZone = 'UTC'");
    world.execute("CREATE TYPE state AS ENUM ('new', 'gone')");
    world.execute(fmt::format("CREATE TABLE t (id text PRIMARY KEY, v {})", change.column));
    world.execute(
        "CREATE FUNCTION store_in_t(topic text, part integer, kafka_offset bigint, key bytea, "
        "value "
        "bytea, headers jsonb, at bigint) RETURNS void LANGUAGE plpgsql AS $$DECLARE x t.v%TYPE "
        ":= convert_from(value, 'UTF8')::jsonb->>'v'; BEGIN INSERT INTO t VALUES "
        "(headers->>'event-id', x); END$$");
  }

  std::unique_ptr<ChildProcess> start(const Way& way, const std::string& interval,
                                      const std::string& url = "") {
    world.use_handler(way.handler);
    for (const auto& setting : way.settings)
      world.set(setting);
    ProgramOptions options;
    options.url = url;
    options.arguments = way.arguments;
    options.arguments.insert(options.arguments.end(), {"--schema-interval", interval});
    options.extra_config =
        "[failures]\non_failure = \"dead-letter\"\nretry_for = \"0s\"\nprogram_error_retry = "
        "\"100ms\"\n";
    return world.start(options);
  }

  void produce(const std::string& id, const std::string& v) {
    world.produce_record({.value = fmt::format(R"({{"v":"{}"}})", v),
                          .headers = {{"event-id", id}, {"v", v}},
                          .partition = 0});
    wait_until([&] { return !stored(id).empty() || letters() > 0; }, kDeadline,
               "message " + id + " to be stored");
  }
  [[nodiscard]] std::string stored(const std::string& id) const {
    return world.value(
        fmt::format("SELECT coalesce((SELECT v::text FROM t WHERE id = '{}'), '')", id));
  }
  [[nodiscard]] std::int64_t letters() const {
    return world.number("SELECT count(*) FROM pawl.dead_letters");
  }
  void change() const { world.execute(change_.ddl); }

  PaymentsWorld world{1};

 private:
  const Change& change_;
};

/// Two topics in one worker: the payments', whose handler is the test's, and another one, each
/// message of which has the worker look at the schema.
class TwoTopics {
 public:
  explicit TwoTopics(const std::string& handler, int partitions = 1)
      : world(partitions),
        partitions_(partitions),
        other_(world.broker().new_topic("other", 1)),
        producer_(world.broker().bootstrap()) {
    world.execute("CREATE TABLE t (id text PRIMARY KEY, v int)");
    world.execute("CREATE TABLE seen (id text PRIMARY KEY)");
    world.use_handler(handler);
    world.set("consumer.workers=1");
  }

  std::unique_ptr<ChildProcess> start(const std::string& failures = "") {
    ProgramOptions options;
    options.arguments = {"--schema-interval", "0"};
    options.extra_config = fmt::format(
        R"toml([[handler]]
topics = ["{}"]
sql = ["INSERT INTO seen VALUES ({{header:event-id}})"]
[failures]
{}
)toml",
        other_, failures);
    auto process = world.start(options);
    process_ = process.get();
    // The worker has its session, has looked at the schema once, and has acquired all.
    look();
    wait_until([&] { return owned() == partitions_ + 1; }, kDeadline, "the partitions");
    return process;
  }

  void produce(const std::string& id, const std::string& v = "1", int partition = 0) {
    world.produce_record({.value = fmt::format(R"({{"v":"{}"}})", v),
                          .headers = {{"event-id", id}},
                          .partition = partition});
  }

  /// Has the worker look; the message's id.
  std::string produce_other() {
    const auto id = fmt::format("look-{}", ++looks_);
    testing::Record record;
    record.value = "{}";
    record.headers = {{"event-id", id}};
    record.partition = 0;
    producer_.send(other_, record);
    producer_.flush(kDeadline);
    return id;
  }

  /// Changes the schema, and waits until the worker has left its session for it.
  void renew() {
    const auto before = sessions();
    world.execute(fmt::format("CREATE TABLE made_{} ()", ++made_));
    look();
    REQUIRE(sessions() > before);
  }

  [[nodiscard]] bool stored(const std::string& id) const {
    return world.number(fmt::format("SELECT count(*) FROM t WHERE id = '{}'", id)) == 1;
  }
  [[nodiscard]] std::int64_t stored() const { return world.number("SELECT count(*) FROM t"); }
  [[nodiscard]] std::string epochs() const {
    return world.value(
        "SELECT string_agg(owner_epoch::text, ' ' ORDER BY topic, partition) FROM "
        "pawl.processed_kafka_offsets");
  }
  /// Its session, of each partition whose owner has one.
  [[nodiscard]] std::string owners() const {
    return world.value(
        "SELECT coalesce(string_agg(a.pid::text, ' ' ORDER BY r.topic, r.partition), '') FROM "
        "pawl.processed_kafka_offsets r JOIN pg_stat_activity a ON a.pid = r.owner_pid AND "
        "a.backend_start = r.owner_backend_start");
  }

  [[nodiscard]] std::int64_t owned() const {
    const auto sessions = owners();
    return sessions.empty() ? 0 : std::ranges::count(sessions, ' ') + 1;
  }

  PaymentsWorld world;

 private:
  [[nodiscard]] int sessions() const { return occurrences(*process_, "EVENT database_connected"); }

  void look() {
    const auto id = produce_other();
    wait_until(
        [&] {
          return world.number(fmt::format("SELECT count(*) FROM seen WHERE id = '{}'", id)) == 1;
        },
        kDeadline, "a message of the other topic");
  }

  const int partitions_;
  const std::string other_;
  testing::KafkaProducer producer_;
  const ChildProcess* process_ = nullptr;
  int looks_ = 0;
  int made_ = 0;
};

}  // namespace

TEST_CASE("a message that begins after the schema has changed is stored as a new session does") {
  const auto way = GENERATE(from_range(ways()));
  const auto change = GENERATE(from_range(changes()));
  CAPTURE(way.name, change.name);
  Schema schema(change);
  // Whoever begins looks.
  const auto process = schema.start(way, "0");
  const ShowOnFailure show("consumer", *process);
  for (const auto* id : {"a0", "a1", "a2", "a3", "a4"})
    schema.produce(id, change.before);
  schema.change();
  schema.produce("b", change.after);
  CHECK(schema.stored("b") == change.stored);
  CHECK(schema.letters() == 0);
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
  stop_cleanly(*process);
}

TEST_CASE("a message that fails by what its session has cached is not counted and runs again") {
  const auto way = GENERATE(from_range(ways()));
  const auto change = GENERATE(from_range(refused_changes()));
  CAPTURE(way.name, change.name);
  Schema schema(change);
  // Nobody looks but whose message has failed.
  const auto process = schema.start(way, "3600000");
  const ShowOnFailure show("consumer", *process);
  for (const auto* id : {"a0", "a1", "a2", "a3", "a4"})
    schema.produce(id, change.before);
  schema.change();
  schema.produce("b", change.after);
  CHECK(schema.stored("b") == change.stored);
  CHECK(schema.letters() == 0);
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
  CHECK(schema.world.in_register(0, "attempts") == "0");
  stop_cleanly(*process);
}

// Fails where a new session takes a server process of the pooler as it is: plpgsql keeps the type
// of a variable there.
TEST_CASE("behind a pooler in session mode, functions know the new schema") {
  const auto change = GENERATE(from_range(changes().begin(), changes().begin() + 3));
  CAPTURE(change.name);
  Schema schema(change);
  const pawl::test::Pooler pooler(schema.world, "session");
  const Way way{"function", "function = \"store_in_t\""};
  const auto process = schema.start(way, "0", pooler.url());
  const ShowOnFailure show("consumer", *process);
  for (const auto* id : {"a0", "a1", "a2", "a3", "a4"})
    schema.produce(id, change.before);
  // What uses a server process is new if it is younger than a second.
  wait_until(
      [&] {
        return schema.world.value(
                   "SELECT bool_and(clock_timestamp() - backend_start > '2 s') FROM "
                   "pg_stat_activity WHERE datname = current_database() AND application_name LIKE "
                   "'pawl%'") == "t";
      },
      kDeadline, "its sessions to be two seconds old");
  schema.change();
  schema.produce("b", change.after);
  CHECK(schema.stored("b") == change.stored);
  CHECK(schema.letters() == 0);
  stop_cleanly(*process);
}

TEST_CASE("a batch whose type is made anew under the same name is applied") {
  const std::string interval = GENERATE("0", "3600000");
  CAPTURE(interval);
  const auto& enum_replaced = changes().back();
  Schema schema(enum_replaced);
  const Way way{"batch",
                "batch = true\nsql = [\"INSERT INTO t SELECT * FROM "
                "unnest({header:event-id}::text[], {/v}::state[])\"]"};
  const auto process = schema.start(way, interval);
  const ShowOnFailure show("consumer", *process);
  schema.produce("a", enum_replaced.before);
  schema.change();
  schema.produce("b", enum_replaced.after);
  CHECK(schema.stored("b") == enum_replaced.stored);
  CHECK(schema.letters() == 0);
  stop_cleanly(*process);
}

TEST_CASE("a replay after a change of the schema is made on a new session") {
  // Tried again by the process that set it aside, once the column takes it.
  const auto& int_to_text = changes()[2];
  Schema schema(int_to_text);
  const Way way{"retried", R"toml(on_failure = "retry-later"
retry_later = ["1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]
sql = ["INSERT INTO t VALUES ({header:event-id}, {/v})"])toml"};
  const auto process = schema.start(way, "0");
  const ShowOnFailure show("consumer", *process);
  schema.produce("a", "12345");
  schema.world.produce_record(
      {.value = R"({"v":"SW1A"})", .headers = {{"event-id", "b"}}, .partition = 0});
  process->wait_for_output("EVENT retry_scheduled", kDeadline);
  schema.change();
  wait_until([&] { return schema.stored("b") == "SW1A"; }, kDeadline, "the letter to be applied");
  stop_cleanly(*process);
}

TEST_CASE("messages that take longer than the schema stays as it is are finished") {
  TwoTopics topics(
      R"toml(concurrency = 4
sql = ["SELECT pg_sleep(3)", "INSERT INTO t VALUES ({header:event-id}, {/v})"])toml");
  for (const auto* id : {"a", "b", "c", "d"})
    topics.produce(id);
  const auto process = topics.start();
  const ShowOnFailure show("consumer", *process);
  const auto epochs = topics.epochs();
  int changes = 0;
  for (; changes < 30 && topics.stored() < 4; ++changes) {
    topics.renew();
    topics.world.execute("SELECT pg_sleep(0.5)");
  }
  CHECK(changes >= 3);
  CHECK(topics.stored() == 4);
  CHECK(topics.epochs() == epochs);
  topics.world.wait_for_stored(0, 3);
  CHECK(occurrences(*process, "EVENT partition_fenced") == 0);
  stop_cleanly(*process);
}

TEST_CASE("the pause before the next attempt lasts over changes of the schema") {
  const std::string concurrency = GENERATE("", "concurrency = 4\n");
  CAPTURE(concurrency);
  TwoTopics topics(concurrency +
                   R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml");
  const auto process =
      topics.start("retry_initial = \"1h\"\nretry_max = \"1h\"\nretry_for = \"10h\"\n");
  const ShowOnFailure show("consumer", *process);
  topics.produce("a", "no number");
  process->wait_for_output("EVENT attempt_failed", kDeadline);
  const auto epochs = topics.epochs();
  for (int i = 0; i < 5; ++i)
    topics.renew();
  CHECK(topics.epochs() == epochs);
  CHECK(occurrences(*process, "EVENT attempt_failed") == 1);
  CHECK(topics.world.number("SELECT coalesce(max(attempts), 0) FROM (SELECT attempts FROM "
                            "pawl.processed_kafka_offsets UNION ALL SELECT attempts FROM "
                            "pawl.out_of_order_completions) a") == 1);
  CHECK(topics.world.stored(0) == -1);
  stop_cleanly(*process);
}

TEST_CASE("the register names the session that replaced another one") {
  TwoTopics topics(R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml", 3);
  const auto process = topics.start();
  const ShowOnFailure show("consumer", *process);
  const auto epochs = topics.epochs();
  const auto before = topics.owners();
  topics.renew();
  CHECK(topics.owned() == 4);
  CHECK(topics.owners() != before);
  CHECK(topics.epochs() == epochs);
  stop_cleanly(*process);
}

TEST_CASE("an operator's change is seen by the session that replaced another one") {
  TwoTopics topics(R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml");
  // The clock does not lead to it.
  topics.world.set("postgres.poll_interval=1h");
  const auto process = topics.start();
  const ShowOnFailure show("consumer", *process);
  topics.produce("a");
  topics.world.wait_for_stored(0, 0);
  topics.world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, last_processed_offset, 'paused', "
      "'pause', 'a test') FROM pawl.processed_kafka_offsets WHERE topic LIKE 'payments%'");
  topics.renew();
  process->wait_for_output("EVENT partition_paused", kDeadline);
  topics.produce("b");
  topics.renew();
  CHECK_FALSE(topics.stored("b"));
  stop_cleanly(*process);
}

TEST_CASE("a row that is locked while the session is replaced is acquired again") {
  TwoTopics topics(R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml");
  topics.world.set_postgres_options("lock_timeout = \"60s\"");
  const auto process = topics.start();
  const ShowOnFailure show("consumer", *process);
  topics.produce("a");
  topics.world.wait_for_stored(0, 0);
  const auto epochs = topics.epochs();
  {
    pqxx::connection connection(topics.world.url());
    pqxx::work locked(connection);
    locked.exec("SELECT FROM pawl.processed_kafka_offsets WHERE topic LIKE 'payments%' FOR UPDATE");
    topics.world.execute("CREATE TABLE made_in_lock ()");
    topics.produce_other();
    wait_until(
        [&] {
          return topics.world.number(
                     "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                     "wait_event_type = 'Lock'") == 1;
        },
        kDeadline, "an acquire that waits");
  }
  topics.produce("b");
  topics.world.wait_for_stored(0, 1);
  CHECK(topics.epochs() != epochs);
  CHECK(topics.owned() == 2);
  stop_cleanly(*process);
}

TEST_CASE("what was finished ahead and is lost with the session is processed before what follows") {
  TwoTopics topics(
      R"toml(concurrency = 4
order_by = "{/v}"
sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml");
  topics.world.set_postgres_options("lock_timeout = \"60s\"");
  topics.world.execute("ALTER TABLE t ADD COLUMN place serial");
  pqxx::connection connection(topics.world.url());
  std::optional<pqxx::work> in_its_way(connection);
  in_its_way->exec("INSERT INTO t VALUES ('a', 0)");
  topics.produce("a", "1");
  topics.produce("b", "2");
  const auto process = topics.start();
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return topics.stored("b"); }, kDeadline, "the second message");
  // As a failover takes its commit back, and not the offset, which waits for the first message.
  topics.world.execute(
      "BEGIN; DELETE FROM t; DELETE FROM pawl.out_of_order_completions; DELETE FROM "
      "pawl.idempotency_keys "
      "WHERE key = 'b'; COMMIT");
  topics.renew();
  topics.produce("c", "2");
  wait_until([&] { return topics.stored("c"); }, kDeadline, "the third message");
  CHECK(topics.world.value("SELECT string_agg(id, '' ORDER BY place) FROM t") == "bc");
  in_its_way.reset();
  topics.world.wait_for_stored(0, 2);
  CHECK(topics.stored() == 3);
  stop_cleanly(*process);
}

TEST_CASE("a halt that the register has lost is decided again") {
  TwoTopics topics(R"toml(sql = ["INSERT INTO t VALUES ({header:event-id}, {/v}::int)"])toml");
  const auto process = topics.start("retry_for = \"0s\"\n");
  const ShowOnFailure show("consumer", *process);
  topics.produce("a", "no number");
  topics.world.wait_for_state(0, "halted");
  process->wait_for_output("EVENT partition_halted", kDeadline);
  // As a failover takes its commit back, and not the acquire before it.
  topics.world.execute(
      "UPDATE pawl.processed_kafka_offsets SET state = 'running', halt_kind = NULL, halt_code = "
      "NULL,"
      " halt_offset = NULL, halt_handler = NULL, halt_cause = NULL, halt_parameters = NULL WHERE "
      "state = 'halted'");
  process->wait_for_output("the stored halt of the partition is gone", kDeadline);
  topics.world.wait_for_state(0, "halted");
  CHECK(topics.world.in_register(0, "halt_offset") == "0");
  stop_cleanly(*process);
}
