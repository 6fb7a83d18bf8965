// W3C Trace Context of a record: in the log, with dead letters, in what is published, in SQL.
#include <nlohmann/json.hpp>
#include <sstream>

#include "failing_site.hpp"
#include "prelude.hpp"

namespace {

const std::string kTraceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00-" + kTraceId + "-00f067aa0ba902b7-01";
const std::string kEvil = "00-'*/; DROP TABLE accounts --";

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

void send(const Site& site, const std::string& event, const Headers& more,
          const std::string& account = "a") {
  Record record;
  record.key = account;
  record.value = R"({"account": ")" + account + R"(", "amount": 1})";
  record.headers = {{"event-id", event}};
  record.headers.insert(record.headers.end(), more.begin(), more.end());
  record.partition = 0;
  KafkaProducer producer(site.bootstrap);
  producer.send(site.topic, record);
  producer.flush();
}

/// The lines of a log in JSON, by event and offset.
std::map<std::pair<std::string, std::int64_t>, nlohmann::json> lines_of(const std::string& log) {
  std::map<std::pair<std::string, std::int64_t>, nlohmann::json> lines;
  std::istringstream text(log);
  for (std::string line; std::getline(text, line);) {
    const auto object = nlohmann::json::parse(line);
    lines[{object.value("event", ""), object.value("offset", std::int64_t{-1})}] = object;
  }
  return lines;
}

/// What of the trace was published for an event.
struct Published {
  std::string parent;
  std::string state;
  std::size_t headers = 0;  ///< of the trace

  bool operator==(const Published&) const = default;
};

Published published_for(const Site& site, const std::string& topic, const std::string& event) {
  for (const auto& record : read_topic(site.bootstrap, topic)) {
    if (record.value != event)
      continue;
    Published published{record.header("traceparent"), record.header("tracestate")};
    for (const auto& [name, value] : record.headers)
      published.headers += name.starts_with("trace") ? 1 : 0;
    return published;
  }
  throw std::runtime_error("nothing was published for " + event);
}

}  // namespace

TEST_CASE("the log says of which trace a message is, in every way in which it ends") {
  Failing site("dead-letter");
  site.more += "[log]\nlevel = \"debug\"\nformat = \"json\"\n";
  send(site, "good", {{"traceparent", kParent}, {"tracestate", "vendor=1"}});
  send(site, "bad", {{"traceparent", kParent}}, "stranger");
  send(site, "evil", {{"traceparent", kEvil}}, "stranger");
  send(site, "plain", {});
  send(site, "good", {{"traceparent", kParent}, {"tracestate", "vendor=1"}});
  const auto done = site.run({"run", "--drain"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  auto lines = lines_of(done.err);
  for (const auto& [event, offset] :
       std::vector<std::pair<std::string, std::int64_t>>{{"message_committed", 0},
                                                         {"attempt_failed", 1},
                                                         {"message_dead_lettered", 1},
                                                         {"message_deduplicated", 4}}) {
    CAPTURE(event);
    const auto& line = lines[{event, offset}];
    CHECK(line.value("trace_id", "") == kTraceId);
    CHECK(line.value("span_id", "") == kParent.substr(36, 16));
  }
  for (const auto& [event, offset] : std::vector<std::pair<std::string, std::int64_t>>{
           {"attempt_failed", 2}, {"message_committed", 3}}) {
    CAPTURE(event);
    const auto& line = lines[{event, offset}];
    REQUIRE(line.is_object());
    CHECK_FALSE(line.contains("trace_id"));
    CHECK_FALSE(line.contains("span_id"));
  }
  CHECK_THAT(done.err, !ContainsSubstring("DROP TABLE"));
}

TEST_CASE("each policy tells the trace of the message that it deals with") {
  struct Row {
    std::string policy;
    std::string first;
    std::string second;
  };
  const auto row = GENERATE(Row{"skip", "message_skipped", "message_skipped"},
                            Row{"retry-later", "retry_scheduled", "message_parked"},
                            Row{"park", "message_dead_lettered", "message_parked"});
  CAPTURE(row.policy);
  Failing site(row.policy);
  site.more += "[log]\nlevel = \"debug\"\nformat = \"json\"\n";
  send(site, "bad", {{"traceparent", kParent}}, "stranger");
  send(site, "behind", {{"traceparent", kParent}}, "stranger");
  const auto done = site.run({"run", "--drain"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  auto lines = lines_of(done.err);
  CHECK(lines[{row.first, 0}].value("trace_id", "") == kTraceId);
  CHECK(lines[{row.second, 1}].value("trace_id", "") == kTraceId);
}

TEST_CASE("a halt tells the trace of its message, also where messages run beside each other") {
  const auto more = GENERATE(""s, "concurrency = 4\n"s);
  CAPTURE(more);
  Failing site("halt");
  site.handler += more;
  send(site, "good", {});
  send(site, "bad", {{"traceparent", kParent}}, "stranger");
  const auto halted = site.run({"run", "--drain"});
  INFO(halted.err);
  CHECK(halted.code == 4);
  CHECK_THAT(halted.err,
             ContainsSubstring(" partition_halted ") && ContainsSubstring(" trace_id=" + kTraceId));
  // Nothing stands behind the command that is to be pasted.
  CHECK_THAT(halted.err, ContainsSubstring("--partition 0 --offset 1 --because TEXT\n"));
}

TEST_CASE("a dead letter keeps the trace: in the table, in the commands, and in its topic") {
  Failing site("dead-letter");
  const auto letters = KafkaBroker::shared().new_topic("letters", 1);
  site.more += "[dead_letters]\ntopic = \"" + letters + "\"\n";
  send(site, "bad", {{"traceparent", "00-first"}, {"traceparent", kParent}, {"tracestate", "a=1"}},
       "stranger");
  send(site, "worse", {{"traceparent", kEvil}}, "stranger");
  site.drain();

  const auto list =
      nlohmann::json::parse(site.run({"dlq", "list", "--json"}).out).at("dead_letters");
  REQUIRE(list.size() == 2);
  CHECK(list[0]["traceparent"] == kParent);
  CHECK(list[0]["trace_id"] == kTraceId);
  CHECK(list[1]["traceparent"].is_null());
  CHECK(list[1]["trace_id"].is_null());
  const auto shown = site.run({"dlq", "show", list[0]["id"].dump()});
  CHECK_THAT(shown.out, ContainsSubstring(kTraceId));

  site.wait_for_sql("SELECT count(*) FROM pawl.dead_letters WHERE published_at IS NULL", "0");
  const auto records = read_topic(site.bootstrap, letters);
  REQUIRE(records.size() == 2);
  CHECK(records[0].header("traceparent") == kParent);
  CHECK(records[0].header("tracestate") == "a=1");

  // What is replayed is of the trace that it was of.
  site.mend();
  site.handler =
      "sql = [\"INSERT INTO ledger (event_id, account, amount) VALUES "
      "({header:event-id}, current_setting('pawl_message.trace'), 1)\"]\n";
  const auto replayed = site.run({"dlq", "replay", list[0]["id"].dump()});
  INFO(replayed.out << replayed.err);
  CHECK(replayed.code == 0);
  CHECK(site.sql("SELECT account FROM ledger WHERE event_id = 'bad'") == kParent + " a=1");
}

TEST_CASE("what is published for a message is of its trace, unless its handler says otherwise") {
  Site site;
  const auto out = KafkaBroker::shared().new_topic("traced", 1);
  site.sql(R"sql(
CREATE FUNCTION tell(topic text, "partition" integer, "offset" bigint, key bytea, value bytea,
                     headers jsonb, timestamp_ms bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM pawl.publish(')sql" +
           out + R"sql(', 'k', headers ->> 'event-id'); END $$)sql");
  const auto publishes = [&](const std::string& more) {
    return "sql = [\"SELECT pawl.publish('" + out + "', 'k', {header:event-id}" + more + ")\"]\n";
  };
  // One by one, on their way together, without a key, by a function, beside each other.
  struct Mode {
    std::string name;
    std::string handler;
    std::vector<std::string> set;
  };
  const std::vector<Mode> modes{
      {"pipeline", publishes(""), {}},
      {"alone", publishes(""), {"consumer.pipeline=1"}},
      {"snapshot", publishes("") + "isolation = \"repeatable read\"\n", {}},
      {"parking", publishes("") + "on_failure = \"park\"\n", {}},
      {"parking alone", publishes("") + "on_failure = \"park\"\n", {"consumer.pipeline=1"}},
      {"without a key", publishes("") + "key = \"{header:none}\"\nmissing_key = \"process\"\n", {}},
      {"function", "function = \"tell\"\n", {}},
      {"beside each other", publishes("") + "concurrency = 4\n", {}},
      {"pooled", publishes(""), {"postgres.pooled=true"}},
  };
  std::vector<std::string> arguments;
  for (const auto& mode : modes) {
    CAPTURE(mode.name);
    site.handler = mode.handler;
    for (int i = 0; i < 3; ++i) {
      const auto number = std::to_string(i);
      send(site, mode.name + " whole " + number,
           {{"traceparent", kParent}, {"tracestate", "a=1,b=ü"}, {"tracestate", "a=1,b=2"}});
      send(site, mode.name + " plain " + number, {});
      send(site, mode.name + " evil " + number, {{"traceparent", kEvil}, {"tracestate", "a=1"}});
      send(site, mode.name + " parent " + number, {{"traceparent", kParent}});
    }
    arguments = {"run", "--drain", "--set", "outbox.relay=on"};
    for (const auto& set : mode.set)
      arguments.insert(arguments.end(), {"--set", set});
    const auto done = site.run(arguments);
    INFO(done.err);
    REQUIRE(done.code == 0);
    for (int i = 0; i < 3; ++i) {
      const auto number = std::to_string(i);
      CHECK(published_for(site, out, mode.name + " whole " + number) ==
            Published{kParent, "a=1,b=2", 2});
      CHECK(published_for(site, out, mode.name + " plain " + number) == Published{});
      CHECK(published_for(site, out, mode.name + " evil " + number) == Published{});
      CHECK(published_for(site, out, mode.name + " parent " + number) == Published{kParent, "", 1});
    }
  }

  struct Own {
    std::string event;
    std::string headers;
    Published published;
  };
  const std::vector<Own> own{
      {"other", R"({"type": "x"})", {kParent, "a=1", 2}},
      {"parent", R"({"TraceParent": "mine"})", {"", "", 0}},
      {"both", R"({"traceparent": "mine", "tracestate": "b=2"})", {"mine", "b=2", 2}},
      {"state", R"({"tracestate": "b=2"})", {"", "b=2", 1}},
  };
  for (const auto& row : own) {
    CAPTURE(row.event);
    site.handler = "sql = ['''SELECT pawl.publish('" + out +
                   "', 'k', {header:event-id}, headers => '" + row.headers + "')''']\n";
    send(site, "own " + row.event, {{"traceparent", kParent}, {"tracestate", "a=1"}});
    const auto done = site.run({"run", "--drain", "--set", "outbox.relay=on"});
    INFO(done.err);
    REQUIRE(done.code == 0);
    CHECK(published_for(site, out, "own " + row.event) == row.published);
  }
}

TEST_CASE("with postgres.trace_comment a handler's statements end in a comment, unprepared") {
  Site site;
  site.sql("CREATE TABLE seen (event_id text, query text, prepared bigint)");
  site.handler = R"toml(sql = [
  "INSERT INTO seen SELECT {header:event-id}, current_query(), (SELECT count(*) FROM pg_prepared_statements) -- the last word",
]
)toml";
  const auto run = [&](const std::string& prefix, const std::vector<std::string>& set) {
    for (int i = 0; i < 5; ++i) {
      send(site, prefix + " traced " + std::to_string(i), {{"traceparent", kParent}});
      send(site, prefix + " evil " + std::to_string(i), {{"traceparent", kEvil}});
      send(site, prefix + " plain " + std::to_string(i), {});
    }
    std::vector<std::string> arguments{"run", "--drain"};
    for (const auto& one : set)
      arguments.insert(arguments.end(), {"--set", one});
    const auto done = site.run(arguments);
    INFO(done.err);
    REQUIRE(done.code == 0);
  };
  const auto commented = [&](const std::string& prefix) {
    return site.sql("SELECT count(*) FROM seen WHERE event_id LIKE '" + prefix +
                    " %' AND query LIKE E'%-- the last word\\n/*traceparent=''" + kParent +
                    "''*/'");
  };
  const auto with_any = [&](const std::string& prefix) {
    return site.sql("SELECT count(*) FROM seen WHERE event_id LIKE '" + prefix +
                    " %' AND query LIKE '%/*%'");
  };
  run("off", {});
  CHECK(with_any("off") == "0");
  run("together", {"postgres.trace_comment=true"});
  CHECK(commented("together") == "5");
  CHECK(with_any("together") == "5");
  run("alone", {"postgres.trace_comment=true", "consumer.pipeline=1"});
  CHECK(commented("alone") == "5");
  CHECK(with_any("alone") == "5");
  run("pooled", {"postgres.trace_comment=true", "postgres.pooled=true"});
  CHECK(commented("pooled") == "5");
  // One for all that have no comment, and none for those that have one.
  CHECK(site.sql("SELECT max(prepared) - min(prepared) <= 1 FROM seen WHERE event_id LIKE "
                 "'alone %' AND event_id <> 'alone traced 0'") == "t");

  // Rows are counted, and failures named, as without.
  site.handler = R"toml(sql = [
  { text = "UPDATE accounts SET balance = 1 WHERE id = 'nobody'", expect_rows = 1 },
]
)toml";
  send(site, "counted", {{"traceparent", kParent}});
  const auto failed = site.run({"run", "--drain", "--set", "postgres.trace_comment=true", "--set",
                                "failures.max_attempts=1"});
  CHECK(failed.code == 4);
  CHECK_THAT(failed.err, ContainsSubstring("statement=sql[0]") &&
                             ContainsSubstring("the statement affected 0 rows"));
}
