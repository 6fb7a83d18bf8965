// The schema changes while a consumer runs: what its sessions have cached of it ends.
#include <fmt/format.h>

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
  CHECK(occurrences(*process, "EVENT halted") == 0);
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
  CHECK(occurrences(*process, "EVENT halted") == 0);
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
  process->wait_for_output("EVENT retry_later", kDeadline);
  schema.change();
  wait_until([&] { return schema.stored("b") == "SW1A"; }, kDeadline, "the letter to be applied");
  stop_cleanly(*process);
}
