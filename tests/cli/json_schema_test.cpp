#include "json_schema.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "prelude.hpp"
#include "site.hpp"

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a value that violates a schema is reported with its place") {
  const auto schema = Json::parse(R"json({
    "type": "object",
    "properties": {
      "at": {"type": ["string", "null"], "format": "date-time"},
      "count": {"type": "integer"},
      "list": {"type": "array", "items": {"$ref": "#/$defs/word"}},
      "any": {"anyOf": [{"type": "null"}, {"type": "number"}]},
      "open": {"type": "object"}
    },
    "required": ["count"],
    "$defs": {"word": {"type": "string", "enum": ["a", "b"]}}
  })json");
  struct Row {
    const char* value;
    const char* why;
  };
  const auto row = GENERATE(values<Row>({
      {R"({"count": 1})", ""},
      {R"({"count": 1, "at": "2026-01-31T00:00:00.123Z", "list": ["a", "b"], "any": 1.5})", ""},
      {R"({"count": 1, "at": null, "list": [], "any": null, "open": {"x": 1}})", ""},
      {R"([])", "$: [] is not of type \"object\""},
      {R"({})", "$: \"count\" is missing"},
      {R"({"count": 1.5})", "$.count: 1.5 is not of type \"integer\""},
      {R"({"count": 1, "new": 1})", "$: \"new\" is not documented"},
      {R"({"count": 1, "at": "yesterday"})", "$.at: \"yesterday\" is not RFC 3339 in UTC"},
      {R"({"count": 1, "list": ["a", "c"]})", "$.list[1]: \"c\" is none of [\"a\",\"b\"]"},
      {R"({"count": 1, "any": "x"})", "$.any: \"x\" fits none of anyOf"},
  }));
  CHECK(violation(Json::parse(row.value), schema) == row.why);
}

TEST_CASE("each command with --json has a schema, and each schema a command") {
  Site site;
  const auto completion = site.run_bare({"completion", "bash"}).out;
  std::set<std::string> commands;
  std::istringstream lines(completion);
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find("') words='");
    if (end == std::string::npos || line.find("--json", end) == std::string::npos)
      continue;
    auto name = line.substr(line.find("'pawl ") + 6);
    name.resize(name.find('\''));
    std::replace(name.begin(), name.end(), ' ', '-');
    commands.insert(name);
  }
  std::set<std::string> schemas;
  for (const auto& [name, schema] : json_schemas())
    schemas.insert(name);
  CHECK(schemas.erase(kStatusPage) == 1);
  CHECK(commands == schemas);
}

TEST_CASE("the output of every command follows its schema") {
  Site site(2);
  site.more = "[failures]\non_failure = \"park\"\nmax_attempts = 1\n";
  site.pay(0, "good", "a", "1");
  site.pay(0, "bad", "b", "\"no number\"");
  site.pay(0, "later", "b", "1");
  site.pay(0, "worse", "a", "\"no number\"");
  REQUIRE(site.run({"run", "--drain"}).code == 0);
  site.pay(1, "next", "a", "1");
  const auto id = site.sql("SELECT min(dead_letter_id) FROM pawl.dead_letters");
  site.sql(
      "INSERT INTO pawl.leases (scope_id, key, token, unknown_since, payload_hash, source_id,"
      " partition, kafka_offset) SELECT scope_id, 'call', -1, now(), 0, source_id, 0, 0"
      " FROM pawl.idempotency_keys");
  site.sql(
      "INSERT INTO pawl.lease_losses (scope_id, key, owner, attempt, returned, source_id, "
      "partition,"
      " kafka_offset) SELECT scope_id, key, 'one', 1, true, source_id, 0, 0 FROM pawl.leases");
  site.sql(
      "INSERT INTO pawl.outbox_failed (outbox_id, shard, topic, event_id, created_at, status, "
      "reason)"
      " SELECT n, 0, 'no-such-topic', n::text, now(), 'failed', 'the topic does not exist'"
      " FROM generate_series(7, 8) n");
  const auto topic = site.topic;
  const TempDir folder("json");
  const auto exported = folder.path() / "letters.jsonl";
  const auto message = folder.path() / "message.json";

  std::set<std::string> seen;
  const auto follows = [&](Words words) {
    CAPTURE(words);
    words.emplace_back("--json");
    // run() and run_bare() compare what is printed with the schema.
    const auto outcome = words.front() == "version" ? site.run_bare(words) : site.run(words);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code != 2);
    CHECK_FALSE(outcome.out.empty());
    seen.insert(schema_name(words));
    return outcome.out;
  };
  write_file(exported, follows({"dlq", "export"}));
  write_file(message, follows({"partitions", "peek", "-t", topic, "-p", "1"}));
  for (const auto& words : {
           Words{"status"},
           Words{"status", "--set", "kafka.bootstrap_servers=127.0.0.1:9"},
           Words{"tail", "--once", "--interval", "100ms"},
           Words{"offsets", "show"},
           Words{"offsets", "set", "-t", topic, "-p", "0", "--to", "0", "--dry-run"},
           Words{"offsets", "reset", "-t", topic, "--dry-run"},
           Words{"audit"},
           Words{"audit", "--fast"},
           Words{"check"},
           Words{"try", "--message", message.string()},
           Words{"try", "-t", topic, "-p", "0", "--offset", "1"},
           Words{"try", "-t", topic, "-p", "0", "--offset", "0"},
           Words{"config", "show"},
           Words{"version"},
           Words{"migrate", "status"},
           Words{"migrate", "plan"},
           Words{"migrate", "up"},
           Words{"migrate", "grants", "--role", "consumer"},
           Words{"keys", "show", "good"},
           Words{"keys", "show", "worse"},
           Words{"keys", "estimate", "--rate", "100", "--retention", "1d"},
           Words{"consumers", "list"},
           Words{"dlq", "list"},
           Words{"dlq", "list", "--counts"},
           Words{"dlq", "show", id},
           Words{"dlq", "parked"},
           Words{"dlq", "replay", "--all", "--dry-run"},
           Words{"dlq", "replay", "--all"},
           Words{"dlq", "discard", "--all", "--because", "test", "--dry-run"},
           Words{"dlq", "discard", id, "--because", "test"},
           Words{"dlq", "erase", "--record-key", "b"},
           Words{"dlq", "import", exported.string(), "--dry-run"},
           Words{"dlq", "import", exported.string()},
           Words{"outbox", "status"},
           Words{"outbox", "list"},
           Words{"outbox", "show", "7"},
           Words{"outbox", "discard", "7", "--because", "test"},
           Words{"outbox", "retry", "8"},
           Words{"calls", "list"},
           Words{"calls", "list", "--lost"},
           Words{"calls", "show", "call"},
           Words{"calls", "resolve", "call", "--done"},
           Words{"calls", "acknowledge", "--all"},
           Words{"partitions", "pause", "-t", topic, "--all", "--because", "test"},
           Words{"partitions", "skip", "-t", topic, "-p", "1", "--offset", "0", "--because",
                 "test"},
           Words{"partitions", "resume", "-t", topic, "--all"},
           Words{"skipped", "list"},
           Words{"prune", "--dry-run"},
           Words{"consumers", "remove", site.group, "--because", "test"},
       })
    follows(words);
  for (const auto& [name, schema] : json_schemas()) {
    CAPTURE(name);
    CHECK((seen.contains(name) || name == kStatusPage));
  }
}
