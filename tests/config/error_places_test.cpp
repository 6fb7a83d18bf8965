#include "config/validate.hpp"
#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

/// kRequired with another line for one of its lines.
std::string with_line(const std::string& from, const std::string& to) {
  std::string text = kRequired;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("all that is wrong is said at once, in the order of the file") {
  CHECK(messages_of(request(R"([kafka]
grop = "x"
session_timeout = 45

[postgress]
url = "postgresql://localhost/p"

[log]
level = "loud"

[[handler]]
topics = ["t"]
sql = ["SELECT 1", "SELECT {/x"]
timout = "5s"
)",
                            {"consumer.workers=0"})) ==
        R"(a.toml:2: kafka.grop: unknown option in [kafka]. Did you mean kafka.group?
a.toml:3: kafka.session_timeout: expected a DURATION, found the integer 45. Add the unit: "45s" for seconds or "45ms" for milliseconds
a.toml:5: postgress: unknown section. Did you mean [postgres]?
a.toml:9: log.level = "loud": invalid value. Use "trace", "debug", "info", "warn", or "error"
a.toml:11: handler[0].key: no idempotency key. Set it here or in [idempotency], such as "{header:event-id}". missing_key = "process" applies messages without a duplicate check
a.toml:13:28: handler[0].sql[1]: the placeholder is not closed. Write } at its end, or {{ for a literal brace
a.toml:14: handler[0].timout: unknown option in [[handler]]. Did you mean timeout?
a.toml: kafka.bootstrap_servers: not set. Set it to a broker, such as "127.0.0.1:9092"
a.toml: kafka.group: not set. Set it to the consumer group, such as "payments"
--set consumer.workers=0: out of range. Use 1 to 256)");
}

TEST_CASE("a handler without a key is told where it stands") {
  CHECK(messages_of(request(kRequired, {"idempotency.key="})) ==
        "a.toml:9: handler[0].key: no idempotency key. Set it here or in [idempotency], such as "
        "\"{header:event-id}\". missing_key = \"process\" applies messages without a duplicate "
        "check");
}

TEST_CASE("a mistake in a template, condition or statement has its line and column") {
  CHECK_THAT(messages_of(request(with_line("{header:event-id}", "{header:event-id}:{foo}"))),
             StartsWith("a.toml:6:27: idempotency.key: "));
  CHECK_THAT(
      messages_of(request(with_line("\"SELECT 1\"", "[\n  \"SELECT 1\",\n  'SELECT {foo}',\n]"))),
      StartsWith("a.toml:13:12: handler[0].sql[1]: "));
  CHECK_THAT(messages_of(request(with_line("\"SELECT 1\"", "\"\"\"\nSELECT 1,\n  {foo}\n\"\"\""))),
             StartsWith("a.toml:13:4: handler[0].sql[0]: "));
  CHECK_THAT(messages_of(request(with_line("\"SELECT 1\"", "[{ text = \"SELECT {foo}\" }]"))),
             StartsWith("a.toml:11:26: handler[0].sql[0]: "));
  CHECK_THAT(messages_of(request(with_line("sql =", "when = \"{key} = 'a'\"\nsql ="))),
             StartsWith("a.toml:11:15: handler[0].when: "));
}

TEST_CASE("where the file does not hold a text verbatim, the column is the text's") {
  CHECK_THAT(messages_of(request(with_line("\"SELECT 1\"", "\"SELECT\\t{foo}\""))),
             StartsWith("a.toml:11: handler[0].sql[0]: column 9: "));
  CHECK_THAT(messages_of(request(kRequired, {"idempotency.key={foo}"})),
             StartsWith("--set idempotency.key: column 2: "));
  CHECK_THAT(
      messages_of(request(kRequired, {"idempotency.key={foo}${V}"}, {{"V", "secret"}})),
      StartsWith("--set idempotency.key: column 2: cannot be parsed after substitution, and is not "
                 "shown because it may be secret. "));
}

TEST_CASE("a transaction command in a statement is refused with its place") {
  CHECK_THAT(messages_of(request(with_line("SELECT 1", "COMMIT"))),
             StartsWith("a.toml:11:8: handler[0].sql[0]: "));
}

TEST_CASE("a handler that another one shadows is told with both places") {
  CHECK(messages_of(request(kRequired + R"(
[[handler]]
topics = ["payments"]
when = '{header:type} == "refund"'
sql = "SELECT 1"
)")) == "a.toml:14: handler[1].topics[0] = \"payments\": handler[0] (a.toml:9) has no `when`, so "
        "it receives every message of this topic. Place the "
        "handler without `when` last");
}

TEST_CASE("a wrong default of handlers is told once, where it stands") {
  CHECK(messages_of(request(kRequired + R"(
[[handler]]
topics = ["t"]
sql = "SELECT 1"
[handler_defaults]
timeout = "0s"
isolation = 5
)")) == R"(a.toml:17: handler[0].timeout = "0s": out of range. Use "1ms" to "24h"
a.toml:18: handler_defaults.isolation: expected a string, found the integer 5. Put it in quotes: "5")");
}

TEST_CASE("a file that cannot be read or is not TOML is the only thing told of it") {
  LoadRequest missing;
  missing.path = "/nowhere/a.toml";
  CHECK(messages_of(missing) ==
        "/nowhere/a.toml: cannot be read (No such file or directory). Use the path of a TOML file");
  missing.path = "/";
  CHECK(messages_of(missing) == "/: cannot be read (Is a directory). Use the path of a TOML file");
  CHECK_THAT(messages_of(request("[kafka]\ngroup = \n")),
             StartsWith("a.toml:2:9: invalid TOML: ") && !ContainsSubstring("bootstrap"));
  CHECK_THAT(messages_of(request("[kafka]\ngroup = \"a\"\ngroup = \"b\"\n")),
             StartsWith("a.toml:3:"));
}

TEST_CASE("options made in code are checked the same way, without places") {
  Options options;
  options.kafka.bootstrap_servers = "h:1";
  options.kafka.group = "g";
  options.consumer.workers = 0;
  options.kafka.manual_partitions = {-1};
  options.kafka.assignment = Assignment::kManual;
  HandlerOptions handler;
  handler.topics = {"t"};
  handler.sql = {{"SELECT {foo}", std::nullopt}};
  handler.key = "{key}";
  handler.timeout = 0ms;
  options.handlers = {handler};
  std::vector<std::string> texts;
  for (const Problem& problem : validate(options))
    texts.push_back(problem.text());
  REQUIRE(texts.size() == 4);
  CHECK(texts[0] == "kafka.partitions[0] = -1: not a partition number. Use 0 or more");
  CHECK(texts[1] == "consumer.workers = 0: out of range. Use 1 to 256");
  CHECK_THAT(texts[2], StartsWith("handler[0].sql[0]: column 9: "));
  CHECK(texts[3] == "handler[0].timeout = \"0s\": out of range. Use \"1ms\" to \"24h\"");
  CHECK_THROWS_AS(require_valid(options), ConfigErrors);
}
