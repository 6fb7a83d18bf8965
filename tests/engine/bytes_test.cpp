// What a record brings as bytes goes into bytea as it is, and text does not go there unsaid.
#include <fmt/format.h>

#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr auto kDeadline = 60s;

struct Way {
  std::string name;
  std::string handler;
  std::vector<std::string> settings = {};
};

const std::string kInto = "INSERT INTO raw ";
const std::string kValues =
    "VALUES ({header:event-id}, {key}, {value}, {header:trace?}, {header:trace|value})";

const std::vector<Way>& ways() {
  static const std::string kSql = fmt::format("sql = [\"{}{}\"]", kInto, kValues);
  static const std::string kCasts = fmt::format(
      "sql = [\"{}VALUES ({{header:event-id}}, {{key}}::bytea, {{value}}::bytea, "
      "{{header:trace?}}::bytea, {{header:trace|value}}::bytea)\"]",
      kInto);
  static const std::string kBatch = fmt::format(
      "batch = true\nsql = [\"{}SELECT * FROM unnest({{header:event-id}}::text[], "
      "{{key}}::bytea[], {{value}}::bytea[], {{header:trace?}}::bytea[], "
      "{{header:trace|value}}::bytea[])\"]",
      kInto);
  static const std::vector<Way> kWays{
      {"single", kSql, {"consumer.pipeline=1"}},
      {"flights", kSql, {"consumer.pipeline=4"}},
      {"casts", kCasts, {"consumer.pipeline=4"}},
      {"rows counted",
       fmt::format("sql = [{{ text = \"{}{}\", expect_rows = 1 }}]", kInto, kValues),
       {"consumer.pipeline=4"}},
      {"side by side", "concurrency = 4\norder_by = \"{header:event-id}\"\n" + kSql},
      {"batches", kBatch, {"batch.max_messages=4"}},
      {"pooled", kSql, {"postgres.pooled=true"}},
      {"a trace comment", kSql, {"postgres.trace_comment=true"}},
      {"a response",
       fmt::format("sql = [\"SELECT 1\"]\nresponse = \"{}{} RETURNING id\"", kInto, kValues)},
      // The statement's meaning is known only once the one before it has run.
      {"a table of the same transaction",
       fmt::format("sql = [\"CREATE TEMPORARY TABLE passing (LIKE raw) ON COMMIT DROP\", \"INSERT "
                   "INTO passing {}\", \"{}SELECT * FROM passing\"]",
                   kValues, kInto)},
  };
  return kWays;
}

const std::vector<std::string>& values() {
  static const std::vector<std::string> kBytes{
      R"({"re":"\\d+"})",     R"({"path":"C:\\temp"})",
      R"({"s":"a\"b"})",      R"(\x4142)",
      R"(C:\temp)",           "",
      std::string("a\0b", 3), std::string("\xff\xfe\x00\x80", 4),
      "{NULL,\"a\"}",         "plain"};
  return kBytes;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace

TEST_CASE("key, value and headers are stored in bytea byte by byte, whatever they are") {
  const auto way = GENERATE(from_range(ways()));
  const std::string type = GENERATE("bytea", "document");
  CAPTURE(way.name, type);
  PaymentsWorld world(1);
  world.execute("CREATE DOMAIN document AS bytea");
  world.execute(fmt::format(
      "CREATE TABLE raw (id text PRIMARY KEY, key {0}, value {0}, trace {0}, either {0})", type));
  world.use_handler(way.handler);
  for (const auto& setting : way.settings)
    world.set(setting);
  // The session asks with the first what the statement takes.
  const auto& all = values();
  for (std::size_t round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      testing::Record record{.key = all[i], .value = all[i], .partition = 0};
      record.headers = {{"event-id", fmt::format("{}-{}", round, i)}};
      if (round == 1)
        record.headers.emplace_back("trace", all[i]);
      world.produce_record(record);
    }
  }
  world.produce_record({.headers = {{"event-id", "nulls"}, {"trace", "x"}}, .partition = 0});
  ProgramOptions options;
  options.extra_config = "[failures]\non_failure = \"dead-letter\"\nretry_for = \"0s\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] {
        return world.number(
                   "SELECT (SELECT count(*) FROM raw) + (SELECT count(*) FROM "
                   "pawl.dead_letters)") == static_cast<int>(2 * all.size()) + 1;
      },
      kDeadline, "all messages to be dealt with");
  CHECK(world.value("SELECT coalesce(string_agg(idempotency_key || ': ' || error, '; '), '') FROM "
                    "pawl.dead_letters") == "");
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i, all[i]);
    const auto bytes = hex(all[i]);
    const auto row = [&](std::size_t round) {
      return world.value(fmt::format(
          "SELECT concat_ws(' ', encode(key, 'hex'), encode(value, 'hex'), coalesce(encode(trace, "
          "'hex'), 'null'), encode(either, 'hex')) FROM raw WHERE id = '{}-{}'",
          round, i));
    };
    CHECK(row(0) == fmt::format("{0} {0} null {0}", bytes));
    CHECK(row(1) == fmt::format("{0} {0} {0} {0}", bytes));
  }
  CHECK(world.value("SELECT (key IS NULL AND value IS NULL)::text FROM raw WHERE id = 'nulls'") ==
        "true");
  stop_cleanly(*process);
}

TEST_CASE("a record that is no text fails by itself where text is wanted, in batches as well") {
  const auto way = GENERATE(from_range(std::vector<Way>{
      {"single", R"toml(sql = ["INSERT INTO words VALUES ({header:event-id}, {value})"])toml"},
      {"batches",
       "batch = true\nsql = [\"INSERT INTO words SELECT * FROM unnest({header:event-id}::text[], "
       "{value}::text[])\"]"}}));
  CAPTURE(way.name);
  PaymentsWorld world(1);
  world.execute("CREATE TABLE words (id text PRIMARY KEY, value text)");
  world.use_handler(way.handler);
  for (int i = 0; i < 6; ++i)
    world.produce_record({.value = i == 3 ? std::string("a\0b", 3) : "word",
                          .headers = {{"event-id", std::to_string(i)}},
                          .partition = 0});
  ProgramOptions options;
  options.extra_config = "[failures]\non_failure = \"dead-letter\"\nretry_for = \"0s\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 5);
  CHECK(world.number("SELECT count(*) FROM words") == 5);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ',') FROM "
                    "pawl.dead_letters") == "3 undecodable");
  stop_cleanly(*process);
}

TEST_CASE("a byte order mark before JSON is no part of it in json and jsonb, and stays elsewhere") {
  const auto way = GENERATE(from_range(std::vector<Way>{
      {"single",
       R"toml(sql = ["INSERT INTO documents VALUES ({header:event-id}, {value}, {value}, {value}, {value})"])toml"},
      {"casts",
       R"toml(sql = ["INSERT INTO documents VALUES ({header:event-id}, {value}::jsonb, {value}::json, {value}::document, {value})"])toml"},
      {"pooled",
       R"toml(sql = ["INSERT INTO documents VALUES ({header:event-id}, {value}, {value}, {value}, {value})"])toml",
       {"postgres.pooled=true"}},
      {"batches",
       "batch = true\nsql = [\"INSERT INTO documents SELECT * FROM "
       "unnest({header:event-id}::text[], "
       "{value}::jsonb[], {value}::json[], {value}::document[], {value}::text[])\"]"}}));
  CAPTURE(way.name);
  PaymentsWorld world(1);
  world.execute("CREATE DOMAIN document AS jsonb");
  world.execute(
      "CREATE TABLE documents (id text PRIMARY KEY, b jsonb, j json, d document, t text)");
  world.use_handler(way.handler);
  for (const auto& setting : way.settings)
    world.set(setting);
  const std::string marked = "\xEF\xBB\xBF{\"a\":1}";
  for (int i = 0; i < 3; ++i)
    world.produce_record({.value = i == 1 ? "{\"a\":1}" : marked,
                          .headers = {{"event-id", std::to_string(i)}},
                          .partition = 0});
  ProgramOptions options;
  options.extra_config = "[failures]\non_failure = \"dead-letter\"\nretry_for = \"0s\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 2);
  CHECK(world.value("SELECT coalesce(string_agg(error, '; '), '') FROM pawl.dead_letters") == "");
  CHECK(world.value("SELECT string_agg(concat_ws(' ', id, b, j, d, length(t)), ', ' ORDER BY id) "
                    "FROM documents") ==
        "0 {\"a\": 1} {\"a\":1} {\"a\": 1} 8, 1 {\"a\": 1} {\"a\":1} {\"a\": 1} 7, "
        "2 {\"a\": 1} {\"a\":1} {\"a\": 1} 8");
  stop_cleanly(*process);
}

TEST_CASE("a JSON field that is bound to bytea is refused at the start, with what to write") {
  PaymentsWorld world(1);
  world.execute("CREATE TABLE raw (id text, value bytea)");
  const bool batch = GENERATE(false, true);
  CAPTURE(batch);
  world.use_handler(batch
                        ? "batch = true\nsql = [\"INSERT INTO raw SELECT * FROM "
                          "unnest({header:event-id}::text[], {/v}::bytea[])\"]"
                        : R"toml(sql = ["INSERT INTO raw VALUES ({header:event-id}, {/v})"])toml");
  const auto process = world.start();
  const auto end = process->wait(kDeadline);
  CHECK_FALSE(end.success());
  CHECK_THAT(process->output(), ContainsSubstring("handler[0].sql[0]") &&
                                    ContainsSubstring("{/v} is text of the message's JSON"));
  CHECK_THAT(process->output(),
             ContainsSubstring(batch ? "{/v}::text[]" : "convert_to({/v}::text, 'UTF8')"));
}

TEST_CASE("a JSON field whose column becomes bytea meanwhile halts, and goes on when it is not") {
  PaymentsWorld world(1);
  world.execute("CREATE TABLE raw (id text, value text)");
  world.use_handler(R"toml(sql = ["INSERT INTO raw VALUES ({header:event-id}, {/v})"])toml");
  const auto produce = [&](const std::string& id) {
    world.produce_record(
        {.value = R"({"v":"\\x4142"})", .headers = {{"event-id", id}}, .partition = 0});
  };
  ProgramOptions options;
  options.arguments = {"--schema-interval", "0"};
  options.extra_config = "[failures]\nprogram_error_retry = \"100ms\"\n";
  produce("a");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 0);
  world.execute("ALTER TABLE raw ALTER value TYPE bytea USING convert_to(value, 'UTF8')");
  produce("b");
  world.wait_for_state(0, "halted");
  CHECK_THAT(world.in_register(0, "halt_cause"),
             ContainsSubstring("convert_to({/v}::text, 'UTF8')"));
  world.execute("ALTER TABLE raw ALTER value TYPE text USING convert_from(value, 'UTF8')");
  world.wait_for_stored(0, 1);
  CHECK(world.number("SELECT count(*) FROM raw WHERE value = '\\x4142'") == 2);
  stop_cleanly(*process);
}
