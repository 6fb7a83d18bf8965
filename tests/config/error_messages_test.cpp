#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "config/validate.hpp"
#include "loading.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using namespace std::chrono_literals;
using namespace pawl;
using namespace pawl::config;
using namespace pawl::config::test;

namespace {

struct Case {
  std::string set;    // what stands after --set, beside kRequired and the variable V = "8"...
  std::string error;  // ...gives this, after "--set OPTION=...: "
};

// Every message that one wrong option can give.
// clang-format off
const std::vector<Case> kCases{
    {"kafka.bootstrap_servers=",
     R"(kafka.bootstrap_servers: not set; name a broker, such as "127.0.0.1:9092")"},
    {"kafka.bootstrap_servers=a:1,,b:2",
     R"(kafka.bootstrap_servers = "a:1,,b:2": broker 2 of the list cannot be read; write host:port, several separated by commas)"},
    {"kafka.bootstrap_servers=a:70000",
     R"(kafka.bootstrap_servers = "a:70000": broker 1 of the list cannot be read; write host:port, several separated by commas)"},
    {"kafka.bootstrap_servers=a b:1",
     R"(kafka.bootstrap_servers = "a b:1": broker 1 of the list cannot be read; write host:port, several separated by commas)"},
    {"kafka.bootstrap_servers=[::1",
     R"(kafka.bootstrap_servers = "[::1": broker 1 of the list cannot be read; write host:port, several separated by commas)"},
    {"kafka.bootstrap_servers=[1]",
     "kafka.bootstrap_servers: expected a string, found an array; write a text in quotes"},
    {"kafka.group=",
     R"(kafka.group: not set; name the consumer group, such as "payments")"},
    {R"(kafka.group="a ")",
     R"(kafka.group = "a ": begins or ends with a space; remove the space)"},
    {R"(kafka.group="a\tb")",
     R"(kafka.group = "a\u0009b": holds control characters; give a printable name)"},
    {std::string{"kafka.group="} + std::string(256, 'x'),
     std::string{R"(kafka.group = ")"} + std::string(80, 'x') + R"(...": longer than 255 bytes; give a shorter name)"},
    {"kafka.cluster=",
     R"(kafka.cluster = "": empty; name the cluster, or remove the option)"},
    {"kafka.cluster=a/b",
     R"(kafka.cluster = "a/b": the name cannot hold /; choose a name without it)"},
    {"idempotency.scope=a/b/c",
     R"(idempotency.scope = "a/b/c": a scope's name cannot hold /; choose a name without it)"},
    {std::string{"kafka.group_instance_id="} + std::string(256, 'x'),
     std::string{R"(kafka.group_instance_id = ")"} + std::string(80, 'x') + R"(...": longer than 249 bytes; give a shorter name)"},
    {"kafka.group_protocol=new",
     R"(kafka.group_protocol: "new" is not a known value; write "classic" or "consumer")"},
    {"kafka.assignor=sticky",
     R"(kafka.assignor = "sticky": not a known value; write "cooperative-sticky", "range" or "roundrobin")"},
    {"kafka.session_timeout=45",
     R"(kafka.session_timeout: expected a duration, found the integer 45; write the unit: "45s" for seconds or "45ms" for milliseconds)"},
    {"kafka.session_timeout=45 s",
     R"(kafka.session_timeout: expected a duration, found the string "45 s"; write a whole number and ms, s, m or h in quotes, such as "500ms" or "30s")"},
    {"kafka.session_timeout=999ms",
     R"(kafka.session_timeout = "999ms": out of range; give "1s" to "1h")"},
    {"kafka.session_timeout=61m",
     R"(kafka.session_timeout = "61m": out of range; give "1s" to "1h")"},
    {"kafka.start=begin",
     R"(kafka.start: expected a name or a time, found the string "begin"; write "committed", "earliest", "latest", "halt" or a time such as 2026-01-31T00:00:00Z)"},
    {"kafka.start=5",
     R"(kafka.start: expected a name or a time, found the integer 5; write "committed", "earliest", "latest", "halt" or a time such as 2026-01-31T00:00:00Z)"},
    {"kafka.start=2026-01-31",
     "kafka.start: expected a name or a time, found a date or time without time zone; write date, time and time zone, such as 2026-01-31T00:00:00Z"},
    {"kafka.start=1960-01-01T00:00:00Z",
     R"(kafka.start: a time before 1970; give a later time, or "earliest")"},
    {"kafka.buffer_per_partition=1048576",
     R"(kafka.buffer_per_partition: expected a size, found the integer 1048576; write the unit: "1048576B" for bytes or "1048576KiB" for kibibytes)"},
    {"kafka.buffer_per_partition=1MB",
     R"(kafka.buffer_per_partition: expected a size, found the string "1MB"; write a whole number and B, KiB, MiB or GiB in quotes, such as "64KiB")"},
    {"kafka.buffer_per_partition=1023B",
     R"(kafka.buffer_per_partition = "1023B": out of range; give "1KiB" to "1GiB")"},
    {"kafka.buffer_per_partition=2GiB",
     R"(kafka.buffer_per_partition = "2GiB": out of range; give "1KiB" to "1GiB")"},
    {"kafka.topic_check_interval=50ms",
     R"(kafka.topic_check_interval = "50ms": out of range; give "100ms" to "1h")"},
    {"kafka.commit_interval=0s",
     R"(kafka.commit_interval = "0s": out of range; give "100ms" to "1h")"},
    {"kafka.assignment=manual",
     R"(kafka.partitions: not set, but kafka.assignment is "manual"; list the partitions of this process, such as [0, 1])"},
    {"kafka.assignment=self",
     R"(kafka.assignment: "self" is not a known value; write "group" or "manual")"},
    {"kafka.partitions=[0]",
     R"(kafka.partitions: set, but kafka.assignment is "group"; remove it, or set kafka.assignment = "manual")"},
    {"kafka.partitions=0",
     "kafka.partitions: expected an array of numbers, found the integer 0; write partition numbers between [ and ], such as [0, 1]"},
    {"kafka.partitions=[-1]",
     "kafka.partitions[0]: expected a whole number, found the integer -1; write a number that is not negative"},
    {R"(kafka.partitions=["0"])",
     R"(kafka.partitions[0]: expected a whole number, found the string "0"; write a number without quotes)"},
    {"kafka.partitions=[2147483648]",
     "kafka.partitions[0]: expected a whole number, found the integer 2147483648; write a number of at most 2147483647"},
    {R"(kafka={ assignment = "manual", partitions = [1, 1] })",
     "kafka.partitions[1] = 1: listed twice; remove one"},
    {"kafka=1",
     "kafka: expected a section, found the integer 1; write its options below [kafka]"},
    {"kafka.librdkafka=1",
     "kafka.librdkafka: expected a section, found the integer 1; write its options below [kafka.librdkafka]"},
    {"kafka.librdkafka.client.id=[1]",
     "kafka.librdkafka.client.id: expected a string, number or boolean, found an array; write the value as CONFIGURATION.md of librdkafka has it"},
    {"kafka.librdkafka.enable.auto.commit=true",
     "kafka.librdkafka.enable.auto.commit: refused: positions come from PostgreSQL alone; an offset that librdkafka keeps could skip messages; remove it (pawl sets false)"},
    {"kafka.librdkafka.isolation.level=read_uncommitted",
     "kafka.librdkafka.isolation.level: refused: messages of aborted transactions would be applied; remove it (read_committed)"},
    {"kafka.librdkafka.rebalance_cb=x",
     "kafka.librdkafka.rebalance_cb: refused: it takes code, not text; remove it"},
    {"kafka.client.id=x",
     "kafka.client: unknown option; properties of librdkafka stand below [kafka.librdkafka]"},
    {"postgres.url=db",
     R"(postgres.url: neither a connection URI nor keywords and values; write postgresql://host/database or "host=... dbname=...")"},
    {"postgres.url=mysql://db/p",
     "postgres.url: not a PostgreSQL URI; begin it with postgresql://"},
    {"postgres.schema=Pawl",
     R"(postgres.schema = "Pawl": not a plain identifier; use a to z, 0 to 9 and _, at most 63, not a digit first)"},
    {"postgres.schema=",
     R"(postgres.schema = "": not a plain identifier; use a to z, 0 to 9 and _, at most 63, not a digit first)"},
    {"postgres.schema=pg_pawl",
     R"(postgres.schema = "pg_pawl": PostgreSQL keeps names with pg_ for itself; choose another name)"},
    {"postgres.pooled=yes",
     R"(postgres.pooled: expected true or false, found the string "yes"; write true or false without quotes)"},
    {R"(postgres.pooled="${V}")",
     R"(postgres.pooled: expected true or false, found the string "${V}"; write true or false without quotes; for a value from outside use --set, ${...} always gives a string)"},
    {"postgres.synchronous_commit=maybe",
     R"(postgres.synchronous_commit = "maybe": not a known value; write "", "on", "off", "local", "remote_write" or "remote_apply")"},
    {"postgres.connect_timeout=1ms",
     R"(postgres.connect_timeout = "1ms": out of range; give "100ms" to "10m")"},
    {"postgres.lock_timeout=1ms",
     R"(postgres.lock_timeout = "1ms": out of range; give "10ms" to "1h")"},
    {"postgres.retry_initial=0s",
     R"(postgres.retry_initial = "0s": out of range; give "1ms" to "1h")"},
    {"postgres.retry_initial=2s",
     R"(postgres.retry_max = "1s": less than postgres.retry_initial; give the first delay in retry_initial and the longest in retry_max)"},
    {"postgres.retry_max=2h",
     R"(postgres.retry_max = "2h": out of range; give "1ms" to "1h")"},
    {"postgres.stalled_owner_after=1ms",
     R"(postgres.stalled_owner_after = "1ms": out of range; give "100ms" to "1h")"},
    {"postgres.poll_interval=1ms",
     R"(postgres.poll_interval = "1ms": out of range; give "10ms" to "1h")"},
    {"idempotency.scope=a{b}",
     R"(idempotency.scope = "a{b}": a scope is a name, not a template; put what tells keys apart into the key)"},
    {std::string{"idempotency.scope="} + std::string(256, 'x'),
     std::string{R"(idempotency.scope = ")"} + std::string(80, 'x') + R"(...": longer than 255 bytes; give a shorter name)"},
    {"idempotency.missing_key=ignore",
     R"(idempotency.missing_key: "ignore" is not a known value; write "fail", "process" or "skip")"},
    {"idempotency.conflict=process",
     R"(idempotency.conflict: "process" is not a known value; write "fail" or "ignore")"},
    {"failures.then=dead-letter",
     R"(failures.then: "dead-letter" is not available in this version; write "halt")"},
    {"failures.then=stop",
     R"(failures.then: "stop" is not a known value; write "halt")"},
    {"failures.max_attempts=0",
     "failures.max_attempts = 0: out of range; give 1 to 1000"},
    {"failures.max_attempts=1001",
     "failures.max_attempts = 1001: out of range; give 1 to 1000"},
    {"failures.max_attempts=-1",
     "failures.max_attempts: expected a whole number, found the integer -1; write a number that is not negative"},
    {"failures.max_attempts=4294967296",
     "failures.max_attempts: expected a whole number, found the integer 4294967296; write a number of at most 4294967295"},
    {"failures.max_attempts=5.5",
     "failures.max_attempts: expected a whole number, found the number 5.5; write a number without quotes"},
    {R"(failures.max_attempts="${V}")",
     R"(failures.max_attempts: expected a whole number, found the string "${V}"; write a number without quotes; for a value from outside use --set, ${...} always gives a string)"},
    {"failures.retry_initial=1m",
     R"(failures.retry_max = "30s": less than failures.retry_initial; give the first delay in retry_initial and the longest in retry_max)"},
    {"failures.retry_max=25h",
     R"(failures.retry_max = "25h": out of range; give "1ms" to "24h")"},
    {"failures.program_error_retry=1ms",
     R"(failures.program_error_retry = "1ms": out of range; give "10ms" to "24h")"},
    {"consumer.workers=0",
     "consumer.workers = 0: out of range; give 1 to 256"},
    {"consumer.workers=257",
     "consumer.workers = 257: out of range; give 1 to 256"},
    {"consumer.shutdown_timeout=2h",
     R"(consumer.shutdown_timeout = "2h": out of range; give "100ms" to "1h")"},
    {"consumer.unmatched=halt",
     R"(consumer.unmatched: "halt" is not a known value; write "fail" or "skip")"},
    {"log.format=xml",
     R"(log.format: "xml" is not a known value; write "text" or "json")"},
    {"log.level=verbose",
     R"(log.level = "verbose": not a known value; write "trace", "debug", "info", "warn" or "error")"},
    {"log.progress_interval=50ms",
     R"(log.progress_interval = "50ms": out of range; give "100ms" to "24h")"},
    {"log.progress_interval=0",
     R"(log.progress_interval: expected a duration, found the integer 0; write the unit: "0s" for seconds or "0ms" for milliseconds)"},
    {"handler_defaults.timeout=0s",
     R"(handler[0].timeout = "0s": out of range; give "1ms" to "24h")"},
    {"handler_defaults.isolation=dirty",
     R"(handler[0].isolation = "dirty": not a known value; write "", "read committed", "repeatable read" or "serializable")"},
    {"handler=[]",
     "handler: none; add at least one [[handler]] with topics and sql"},
    {R"(handler={ topics = ["t"] })",
     "handler: expected an array of tables, found a table; write [[handler]] with two brackets, once for each handler"},
    {"handler=[1]",
     "handler: expected an array of tables, found an array of something else; write [[handler]] with two brackets, once for each handler"},
    {R"(handler=[{ sql = "SELECT 1" }])",
     R"(handler[0].topics: no topic; list its topics, such as ["payments"])"},
    {R"(handler=[{ topics = [], sql = "SELECT 1" }])",
     R"(handler[0].topics: no topic; list its topics, such as ["payments"])"},
    {R"(handler=[{ topics = "t", sql = "SELECT 1" }])",
     R"(handler[0].topics: expected an array of strings, found the string "t"; write ["t"])"},
    {R"(handler=[{ topics = 5, sql = "SELECT 1" }])",
     "handler[0].topics: expected an array of strings, found the integer 5; write texts in quotes between [ and ]"},
    {R"(handler=[{ topics = ["t", 5], sql = "SELECT 1" }])",
     R"(handler[0].topics[1]: expected a string, found the integer 5; write it in quotes: "5")"},
    {R"(handler=[{ topics = ["a b"], sql = "SELECT 1" }])",
     R"(handler[0].topics[0] = "a b": not a name that Kafka allows; use letters, digits, '.', '_' and '-', at most 249)"},
    {R"(handler=[{ topics = ["^t"], sql = "SELECT 1" }])",
     R"(handler[0].topics[0] = "^t": patterns of topics are not supported; list each topic by its name)"},
    {R"(handler=[{ topics = ["t", "t"], sql = "SELECT 1" }])",
     R"(handler[0].topics[1] = "t": listed twice; remove one)"},
    {R"(handler=[{ topics = ["t"] }])",
     "handler[0]: does nothing; give it sql, function, or the name of a C++ handler"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", function = "f" }])",
     "handler[0]: has both sql and function; keep one; a statement can call functions too"},
    {R"(handler=[{ topics = ["t"], sql = [] }])",
     "handler[0].sql: an array without statements; write at least one statement"},
    {R"(handler=[{ topics = ["t"], sql = " ; " }])",
     "handler[0].sql[0]: an empty statement; write it, or remove it"},
    {R"(handler=[{ topics = ["t"], sql = 5 }])",
     R"(handler[0].sql[0]: expected a string, found the integer 5; write it in quotes: "5")"},
    {R"(handler=[{ topics = ["t"], sql = [{ expect_rows = 1 }] }])",
     R"(handler[0].sql[0]: a statement without text; write { text = "...", expect_rows = 1 })"},
    {R"(handler=[{ topics = ["t"], sql = [{ text = "SELECT 1", rows = 1 }] }])",
     "handler[0].sql[0].rows: unknown option; a statement has text and expect_rows"},
    {R"(handler=[{ topics = ["t"], sql = [{ text = "SELECT 1", x = 1 }] }])",
     "handler[0].sql[0].x: unknown option; a statement has text and expect_rows"},
    {R"(handler=[{ topics = ["t"], sql = [{ text = "SELECT 1", expect_rows = -1 }] }])",
     "handler[0].sql[0].expect_rows: expected a whole number, found the integer -1; write a number that is not negative"},
    {R"(handler=[{ topics = ["t"], function = "a.b.c" }])",
     R"(handler[0].function = "a.b.c": not the name of a function; write schema.function, without arguments)"},
    {"handler=[{ topics = [\"t\"], function = \"f(x)\" }]",
     "handler[0].function = \"f(x)\": not the name of a function; write schema.function, without arguments"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", key = "" }])",
     R"(handler[0].key: no idempotency key; set it here or in [idempotency], such as "{header:event-id}"; missing_key = "process" applies messages without duplicate check)"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", scope = "{x}" }])",
     R"(handler[0].scope = "{x}": a scope is a name, not a template; put what tells keys apart into the key)"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", missing_key = "x" }])",
     R"(handler[0].missing_key: "x" is not a known value; write "fail", "process" or "skip")"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", conflict = "x" }])",
     R"(handler[0].conflict: "x" is not a known value; write "fail" or "ignore")"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", timeout = 5 }])",
     R"(handler[0].timeout: expected a duration, found the integer 5; write the unit: "5s" for seconds or "5ms" for milliseconds)"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", timeout = "25h" }])",
     R"(handler[0].timeout = "25h": out of range; give "1ms" to "24h")"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", isolation = "snapshot" }])",
     R"(handler[0].isolation = "snapshot": not a known value; write "", "read committed", "repeatable read" or "serializable")"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", name = "a\u0001" }])",
     R"(handler[0].name = "a\u0001": holds control characters; give a printable name)"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", topic = "t" }])",
     "handler[0].topic: unknown option; did you mean topics?"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1", zzzzzz = "t" }])",
     "handler[0].zzzzzz: unknown option; see [[handler]] in conf/reference.toml"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1" }, { topics = ["u", "t"], sql = "SELECT 1" }])",
     R"(handler[1].topics[1] = "t": handler[0] (--set handler=...) has no `when` and takes every message of this topic; give each handler of a topic a `when`, but for the last)"},
    {R"(handler=[{ topics = ["t"], sql = "SELECT 1" }, { topics = ["t"], when = "{key} == 'a'", sql = "SELECT 1" }])",
     R"(handler[1].topics[0] = "t": handler[0] (--set handler=...) has no `when` and takes every message of this topic; put the handler without `when` last)"},
    {"handler.0.name=x",
     "options of one handler cannot be set here; change them in the config file, or all handlers' with handler_defaults"},
    {"kafka.gruop=x",
     "kafka.gruop: unknown option; did you mean kafka.group?"},
    {"kafka.schema=x",
     "kafka.schema: unknown option; did you mean postgres.schema?"},
    {"kafak.group=x",
     "kafak: unknown section; did you mean [kafka]?"},
    {"kafka.zzzzzzzzzzz=x",
     "kafka.zzzzzzzzzzz: unknown option; see conf/reference.toml for the options"},
    {"handlers=[{}]",
     "handlers: unknown section; did you mean [[handler]]?"},
    {"group=x",
     "group: unknown option; did you mean kafka.group?"},
    {"zzz=x",
     "zzz: unknown option; see conf/reference.toml for the options"},
    {"zzzz.x=x",
     "zzzz: unknown section; see conf/reference.toml for the sections"},
    {"kafka",
     "no value; write --set section.option=value, such as --set kafka.group=other"},
    {"=x",
     "no option; write --set section.option=value, such as --set kafka.group=other"},
    {"kafka.=x",
     "no option; write --set section.option=value, such as --set kafka.group=other"},
    {"kafka.group=${UNSET}",
     "kafka.group: the environment variable UNSET is not set; set it, or write $${ for a plain ${"},
    {"kafka.group=${file:missing}",
     "kafka.group: the file missing cannot be read (No such file or directory); give the path of a file that this user may read"},
    {"kafka.group=${file:.}",
     "kafka.group: the file . cannot be read (Is a directory); give the path of a file that this user may read"},
    {"kafka.group=${UNSET",
     "kafka.group: ${ without }; close it, or write $${ for a plain ${"},
    {"kafka.group=${a b}",
     "kafka.group: ${a b} is neither a variable nor a file; write ${NAME}, ${file:PATH}, or $${ for a plain ${"},
    {"log.level=${V}",
     R"(log.level = "${V}": not a known value; write "trace", "debug", "info", "warn" or "error")"},
};
// clang-format on

std::string place_of(const std::string& set) {
  const std::size_t equals = set.find('=');
  return "--set " + set.substr(0, equals) + (equals == std::string::npos ? ": " : "=...: ");
}

/// kRequired with another line for one of its lines.
std::string with_line(const std::string& from, const std::string& to) {
  std::string text = kRequired;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("every wrong option has its message") {
  for (const Case& wrong : kCases) {
    CAPTURE(wrong.set);
    CHECK(messages_of(request(kRequired, {wrong.set}, {{"V", "8"}})) ==
          place_of(wrong.set) + wrong.error);
  }
}

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
        R"(a.toml:2: kafka.grop: unknown option; did you mean kafka.group?
a.toml:3: kafka.session_timeout: expected a duration, found the integer 45; write the unit: "45s" for seconds or "45ms" for milliseconds
a.toml:5: postgress: unknown section; did you mean [postgres]?
a.toml:9: log.level = "loud": not a known value; write "trace", "debug", "info", "warn" or "error"
a.toml:11: handler[0].key: no idempotency key; set it here or in [idempotency], such as "{header:event-id}"; missing_key = "process" applies messages without duplicate check
a.toml:13:28: handler[0].sql[1]: the placeholder is not closed; write } at its end, or {{ for a literal brace
a.toml:14: handler[0].timout: unknown option; did you mean timeout?
a.toml: kafka.bootstrap_servers: not set; name a broker, such as "127.0.0.1:9092"
a.toml: kafka.group: not set; name the consumer group, such as "payments"
--set consumer.workers=...: consumer.workers = 0: out of range; give 1 to 256)");
}

TEST_CASE("a handler without a key is told where it stands") {
  CHECK(
      messages_of(request(kRequired, {"idempotency.key="})) ==
      "a.toml:9: handler[0].key: no idempotency key; set it here or in [idempotency], such as "
      "\"{header:event-id}\"; missing_key = \"process\" applies messages without duplicate check");
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
             StartsWith("--set idempotency.key=...: idempotency.key: column 2: "));
  CHECK_THAT(
      messages_of(request(kRequired, {"idempotency.key={foo}${V}"}, {{"V", "secret"}})),
      StartsWith("--set idempotency.key=...: idempotency.key: column 2: cannot be understood "
                 "after substitution, and is therefore not shown; "));
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
)")) == "a.toml:14: handler[1].topics[0] = \"payments\": handler[0] (a.toml:9) has no `when` and "
        "takes every message of this topic; put the handler without `when` last");
}

TEST_CASE("a wrong default of handlers is told once, where it stands") {
  CHECK(messages_of(request(kRequired + R"(
[[handler]]
topics = ["t"]
sql = "SELECT 1"
[handler_defaults]
timeout = "0s"
isolation = 5
)")) == R"(a.toml:17: handler[0].timeout = "0s": out of range; give "1ms" to "24h"
a.toml:18: handler_defaults.isolation: expected a string, found the integer 5; write it in quotes: "5")");
}

TEST_CASE("every librdkafka property that would break the promise is refused with a reason") {
  for (const char* property : {"bootstrap.servers",
                               "metadata.broker.list",
                               "group.id",
                               "group.instance.id",
                               "group.protocol",
                               "group.protocol.type",
                               "partition.assignment.strategy",
                               "session.timeout.ms",
                               "queued.max.messages.kbytes",
                               "enable.auto.commit",
                               "auto.commit.enable",
                               "enable.auto.offset.store",
                               "auto.commit.interval.ms",
                               "offset.store.method",
                               "offset.store.path",
                               "offset.store.sync.interval.ms",
                               "auto.offset.reset",
                               "isolation.level",
                               "enable.partition.eof",
                               "api.version.request",
                               "api.version.fallback.ms",
                               "broker.version.fallback",
                               "topic.metadata.refresh.interval.ms",
                               "enabled_events",
                               "log.queue",
                               "internal.termination.signal",
                               "interceptors",
                               "opaque",
                               "default_topic_conf",
                               "ssl_key",
                               "ssl_certificate",
                               "ssl_ca",
                               "ssl_engine_callback_data",
                               "msg_order_cmp",
                               "consume_cb",
                               "rebalance_cb",
                               "offset_commit_cb",
                               "log_cb",
                               "stats_cb",
                               "error_cb",
                               "oauthbearer_token_refresh_cb"}) {
    CAPTURE(property);
    const std::string option = std::string{"kafka.librdkafka."} + property;
    CHECK_THAT(messages_of(request(kRequired, {option + "=x"})),
               StartsWith("--set " + option + "=...: " + option + ": refused: ") &&
                   ContainsSubstring("; "));
  }
}

TEST_CASE(
    "librdkafka properties that leave the promise whole pass, also those that repeat pawl's") {
  const LoadRequest asked = request(
      kRequired,
      {"kafka.librdkafka.client.id=a", "kafka.librdkafka.max.poll.interval.ms=600000",
       "kafka.librdkafka.topic.blacklist=^_", "kafka.librdkafka.check.crcs=false",
       "kafka.librdkafka.group.remote.assignor=uniform", "kafka.librdkafka.plugin.library.paths=p",
       "kafka.librdkafka.debug=cgrp", "kafka.librdkafka.sasl.password=p",
       "kafka.librdkafka.fetch.min.bytes=1", "kafka.librdkafka.heartbeat.interval.ms=500",
       "kafka.librdkafka.isolation.level=READ_COMMITTED",
       "kafka.librdkafka.enable.auto.commit=false", "kafka.librdkafka.auto.offset.reset=error"});
  CHECK(messages_of(asked).empty());
}

TEST_CASE("a file that cannot be read or is not TOML is the only thing told of it") {
  LoadRequest missing;
  missing.path = "/nowhere/a.toml";
  CHECK(messages_of(missing) ==
        "/nowhere/a.toml: cannot be read (No such file or directory); give "
        "the path of a TOML file");
  missing.path = "/";
  CHECK(messages_of(missing) == "/: cannot be read (Is a directory); give the path of a TOML file");
  CHECK_THAT(messages_of(request("[kafka]\ngroup = \n")),
             StartsWith("a.toml:2:9: not TOML: ") && !ContainsSubstring("bootstrap"));
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
  CHECK(texts[0] == "kafka.partitions[0] = -1: not a partition; give 0 or more");
  CHECK(texts[1] == "consumer.workers = 0: out of range; give 1 to 256");
  CHECK_THAT(texts[2], StartsWith("handler[0].sql[0]: column 9: "));
  CHECK(texts[3] == "handler[0].timeout = \"0s\": out of range; give \"1ms\" to \"24h\"");
  CHECK_THROWS_AS(require_valid(options), ConfigErrors);
}
