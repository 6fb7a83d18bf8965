#include "config/load.hpp"

#include <filesystem>
#include <fstream>

#include "config/validate.hpp"
#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

/// The config of the README and of the project's first issue, as it stands.
constexpr const char* kExample = R"toml([kafka]
bootstrap_servers = "127.0.0.1:9092"
group = "payments"

[postgres]
url = "postgresql://localhost/payments"

[idempotency]
key = "{header:event-id}"

[[handler]]
topics = ["payments"]
sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  { text = "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}", expect_rows = 1 },
]
)toml";

void check_example(const Options& options) {
  CHECK(options.kafka.bootstrap_servers == "127.0.0.1:9092");
  CHECK(options.kafka.group == "payments");
  CHECK(options.postgres.url == "postgresql://localhost/payments");
  CHECK(options.idempotency.key == "{header:event-id}");
  REQUIRE(options.handlers.size() == 1);
  CHECK(options.handlers[0].topics == std::vector<std::string>{"payments"});
  REQUIRE(options.handlers[0].sql.size() == 2);
  CHECK(options.handlers[0].sql[1].text.starts_with("UPDATE accounts"));
  CHECK(options.handlers[0].sql[1].expect_rows == 1);
  CHECK(options.handlers[0].timeout == 30s);
}

}  // namespace

TEST_CASE("the smallest config that says what to do is complete") {
  check_example(load(request(kExample)));
}

TEST_CASE("conf/payments.toml is that config") {
  LoadRequest request;
  request.path = PAWL_SOURCE_DIR "/conf/payments.toml";
  const Options options = load(request);
  check_example(options);
  CHECK(options.handlers[0].where.ends_with("conf/payments.toml:15"));
}

TEST_CASE("every kind of handler and statement is read") {
  const Options options = load(request(R"([kafka]
bootstrap_servers = "a:1, b:2"
group = "g"
[handler_defaults]
timeout = "2s"
isolation = "serializable"
[[handler]]
name = "first"
topics = ["t", "u"]
when = '{header:type} == "a"'
sql = { text = "DELETE FROM x WHERE id = {key}", expect_rows = 1 }
key = "{key}"
scope = "shared"
missing_key = "skip"
conflict = "ignore"
timeout = "500ms"
isolation = "read committed"
[[handler]]
topics = ["t"]
when = '{header:type} == "b"'
sql = [{ text = "SELECT 1", expect_rows = 0 }, { text = "SELECT 2", name = "two" }]
response = { statement = "two" }
max_response = "2KiB"
key_checked = true
retention = "30d"
missing_key = "process"
[[handler]]
topics = ["t"]
function = "app.apply"
key = "{/id}"
[[handler]]
name = "registered"
topics = ["v"]
)"));
  REQUIRE(options.handlers.size() == 4);
  const HandlerOptions& first = options.handlers[0];
  CHECK(first.name == "first");
  CHECK(first.topics == std::vector<std::string>{"t", "u"});
  CHECK(first.when == "{header:type} == \"a\"");
  REQUIRE(first.sql.size() == 1);
  CHECK(first.sql[0].text == "DELETE FROM x WHERE id = {key}");
  CHECK(first.sql[0].expect_rows == 1U);
  CHECK(first.key == "{key}");
  CHECK(first.scope == "shared");
  CHECK(first.missing_key == MissingKey::kSkip);
  CHECK(first.conflict == Conflict::kIgnore);
  CHECK(first.timeout == 500ms);
  CHECK(first.isolation == "read committed");
  CHECK(first.where == "a.toml:7");
  const HandlerOptions& second = options.handlers[1];
  REQUIRE(second.sql.size() == 2);
  CHECK(second.sql[0].expect_rows == 0U);
  CHECK(second.sql[1].name == "two");
  CHECK(second.response.statement == "two");
  CHECK(second.max_response == 2048U);
  CHECK(second.key_checked == true);
  CHECK(second.retention == 24h * 30);
  CHECK(first.response.empty());
  CHECK(first.retention == std::nullopt);
  CHECK(second.key == std::nullopt);
  CHECK(second.conflict == std::nullopt);
  CHECK(second.timeout == 2s);
  CHECK(second.isolation == "serializable");
  CHECK(options.handlers[2].function == "app.apply");
  CHECK(options.handlers[3].name == "registered");
}

TEST_CASE("every option is read from its place") {
  const Options options = load(request(R"([kafka]
bootstrap_servers = "a:1"
group = "g"
cluster = "c"
group_instance_id = "i"
group_protocol = "consumer"
assignor = "range"
session_timeout = "6s"
start = "latest"
buffer = "16MiB"
topic_check_interval = "2s"
commit_interval = "3s"
assignment = "manual"
partitions = [0, 7]
[kafka.librdkafka]
"client.id" = "x"
security.protocol = "ssl"
"fetch.min.bytes" = 5
"check.crcs" = false
[postgres]
url = "host=h"
schema = "s"
pooled = true
connect_timeout = "4s"
lock_timeout = "6s"
retry_initial = "7ms"
retry_max = "8s"
stalled_owner_after = "9s"
poll_interval = "10s"
[idempotency]
key = "{key}"
key_checked = true
scope = "sc"
missing_key = "process"
conflict = "ignore"
[failures]
on_failure = "park"
unmatched = "skip"
retry_for = "11m"
max_attempts = 11
max_crashes = 17
retry_initial = "12ms"
retry_max = "13s"
retry_later = ["1m", "2h"]
program_error_retry = "14s"
circuit_breaker = 18
[dead_letters]
store_payload = false
max_payload = "19B"
topic = "dead"
[audit]
sql = ["SELECT 1", { name = "sums", text = "SELECT 2" }]
timeout = "17s"
[consumer]
workers = 15
pipeline = 20
concurrency = 22
durability = "replayable"
durability_interval = "21ms"
shutdown_timeout = "16s"
[log]
format = "json"
level = "debug"
progress_interval = "0s"
[[handler]]
topics = ["t"]
sql = "SELECT 1"
)"));
  Options expected;
  expected.kafka.bootstrap_servers = "a:1";
  expected.kafka.group = "g";
  expected.kafka.cluster = "c";
  expected.kafka.group_instance_id = "i";
  expected.kafka.group_protocol = GroupProtocol::kConsumer;
  expected.kafka.assignor = "range";
  expected.kafka.session_timeout = 6s;
  expected.kafka.start = Start::kLatest;
  expected.kafka.buffer = std::size_t{16} << 20U;
  expected.kafka.topic_check_interval = 2s;
  expected.kafka.commit_interval = 3s;
  expected.kafka.assignment = Assignment::kManual;
  expected.kafka.manual_partitions = {0, 7};
  expected.kafka.librdkafka = {{"client.id", "x"},
                               {"security.protocol", "ssl"},
                               {"fetch.min.bytes", "5"},
                               {"check.crcs", "false"}};
  expected.postgres.url = "host=h";
  expected.postgres.schema = "s";
  expected.postgres.pooled = true;
  expected.postgres.connect_timeout = 4s;
  expected.postgres.lock_timeout = 6s;
  expected.postgres.retry_initial = 7ms;
  expected.postgres.retry_max = 8s;
  expected.postgres.stalled_owner_after = 9s;
  expected.postgres.poll_interval = 10s;
  expected.idempotency = {"{key}", "sc", MissingKey::kProcess, Conflict::kIgnore};
  expected.idempotency.key_checked = true;
  expected.failures = {
      FailurePolicy::kPark, Unmatched::kSkip, 11min, 11, 17, 12ms, 13s, {1min, 2h}, 14s, 18};
  expected.dead_letters = {false, 19, "dead"};
  expected.audit = {{{"", "SELECT 1"}, {"sums", "SELECT 2"}}, 17s};
  expected.consumer = {15, 20, 22, Durability::kReplayable, 21ms, 16s, false};
  expected.log = {LogFormat::kJson, "debug", 0ms};
  expected.handlers = options.handlers;
  CHECK(options == expected);
}

TEST_CASE("every name of a choice stands for its value") {
  const auto with = [](const std::string& set) { return load(request(kRequired, {set})); };
  const auto group_protocol = [&](const std::string& name) {
    return with("kafka.group_protocol=" + name).kafka.group_protocol;
  };
  CHECK(group_protocol("classic") == GroupProtocol::kClassic);
  CHECK(group_protocol("consumer") == GroupProtocol::kConsumer);
  const std::string manual = R"(kafka={ assignment = "manual", partitions = [0] })";
  CHECK(with(manual).kafka.assignment == Assignment::kManual);
  CHECK(with("kafka.assignment=group").kafka.assignment == Assignment::kGroup);
  const auto missing_key = [&](const std::string& name) {
    return with("idempotency.missing_key=" + name).idempotency.missing_key;
  };
  CHECK(missing_key("fail") == MissingKey::kFail);
  CHECK(missing_key("process") == MissingKey::kProcess);
  CHECK(missing_key("skip") == MissingKey::kSkip);
  CHECK(with("idempotency.conflict=fail").idempotency.conflict == Conflict::kFail);
  CHECK(with("idempotency.conflict=ignore").idempotency.conflict == Conflict::kIgnore);
  const auto then = [&](const std::string& name) {
    return with("failures.on_failure=" + name).failures.on_failure;
  };
  CHECK(then("halt") == FailurePolicy::kHalt);
  CHECK(then("dead-letter") == FailurePolicy::kDeadLetter);
  CHECK(then("park") == FailurePolicy::kPark);
  CHECK(with("failures={ on_failure = \"retry-later\", max_attempts = 1 }").failures.on_failure ==
        FailurePolicy::kRetryLater);
  CHECK(then("skip") == FailurePolicy::kSkip);
  CHECK(with("failures.unmatched=fail").failures.unmatched == Unmatched::kFail);
  CHECK(with("failures.unmatched=skip").failures.unmatched == Unmatched::kSkip);
  const auto durability = [&](const std::string& name) {
    return with("consumer.durability=" + name).consumer.durability;
  };
  CHECK(durability("synchronous") == Durability::kSynchronous);
  CHECK(durability("replayable") == Durability::kReplayable);
  CHECK(with("log.format=text").log.format == LogFormat::kText);
  CHECK(with("log.format=json").log.format == LogFormat::kJson);
}

TEST_CASE("what a handler inherits is wrong once, what it has of its own is wrong at its place") {
  const std::string handlers = kRequired + "[failures]\ncircuit_breaker = 2000000\n" +
                               "[[handler]]\ntopics = [\"t\"]\nsql = \"SELECT 1\"\n";
  CHECK(messages_of(request(handlers + "on_failure = \"park\"\n")) ==
        "a.toml:13: failures.circuit_breaker = 2000000: out of range. Use 0 to 1000000");
  CHECK(messages_of(request(handlers + "retry_initial = \"31s\"\nmax_crashes = 0\n")) ==
        "a.toml:13: failures.circuit_breaker = 2000000: out of range. Use 0 to 1000000\n"
        "a.toml:17: handler[1].retry_max = \"30s\": less than handler[1].retry_initial. Use "
        "retry_initial for the first delay and retry_max for the longest\n"
        "a.toml:18: handler[1].max_crashes = 0: out of range. Use 1 to 100");
}

TEST_CASE("a handler's own failure policy stands over that of [failures], option by option") {
  const auto options = load(request(R"(
[kafka]
bootstrap_servers = "a:1"
group = "g"
[postgres]
url = "host=h"
[idempotency]
key = "{key}"
[failures]
on_failure = "dead-letter"
max_attempts = 7
[[handler]]
topics = ["t"]
sql = "SELECT 1"
[[handler]]
topics = ["u"]
sql = "SELECT 1"
on_failure = "park"
circuit_breaker = 0
)"));
  REQUIRE(options.handlers.size() == 2);
  CHECK(options.handlers[0].failures == std::nullopt);
  auto own = options.failures;
  own.on_failure = FailurePolicy::kPark;
  own.circuit_breaker = 0;
  CHECK(options.handlers[1].failures == own);
  CHECK(own.max_attempts == 7);
}

TEST_CASE("alerts have a command with its arguments, a channel and their bounds") {
  const auto options = load(
      request(kRequired, {R"(alerts.command=["/bin/page", "--team", "a b"])", "alerts.timeout=3s",
                          "alerts.notify_channel=On Call", "alerts.min_interval=0s",
                          "alerts.unreachable_after=5m", "log.error_details=true"}));
  CHECK(options.alerts.command == std::vector<std::string>{"/bin/page", "--team", "a b"});
  CHECK(options.alerts.timeout == 3s);
  CHECK(options.alerts.notify_channel == "On Call");
  CHECK(options.alerts.min_interval == 0s);
  CHECK(options.alerts.unreachable_after == 5min);
  CHECK(options.log.error_details);
}

TEST_CASE("brokers may be names and addresses, and each has a port") {
  struct Row {
    const char* written;
    const char* read;
  };
  const auto row = GENERATE(Catch::Generators::values<Row>({
      {"localhost", "localhost:9092"},
      {"localhost:9093", "localhost:9093"},
      {"10.0.0.1", "10.0.0.1:9092"},
      {"a:1,b_2.c-d:65535", "a:1,b_2.c-d:65535"},
      {"[::1]:9093", "[::1]:9093"},
      {"[::1]", "[::1]:9092"},
      {"[::]", "[::]:9092"},
      {"[fe80::1%eth0]", "[fe80::1%eth0]:9092"},
      {"[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.1]:1"},
      {" a:1 , b , [::1] ", "a:1,b:9092,[::1]:9092"},
      {"a,a:9092,a:1,a:09092", "a:9092,a:1"},
  }));
  CAPTURE(row.written);
  CHECK(load(request(kRequired, {std::string{"kafka.bootstrap_servers='"} + row.written + "'"}))
            .kafka.bootstrap_servers == row.read);
}

TEST_CASE("a start may be a time, with or without quotes") {
  const auto* time = GENERATE("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z",
                              "2026-01-31T14:00:00+02:00", "\"2026-01-31T12:00:00Z\"",
                              "\"2026-01-31 12:00:00z\"", "'2026-01-31T07:30:00-04:30'");
  CAPTURE(time);
  const Options options = load(request(kRequired, {std::string{"kafka.start="} + time}));
  CHECK(options.kafka.start == Start::kTimestamp);
  CHECK(options.kafka.start_timestamp.time_since_epoch().count() == 1769860800000);
}

TEST_CASE("an override comes after the file, the last one counts") {
  const Options options = load(request(
      kRequired, {"kafka.group=other", "kafka.group = another", "consumer.workers=8",
                  "postgres.pooled=true", "postgres.schema=\"quoted\"", "kafka.partitions=[1, 2]",
                  "kafka.assignment=manual", "kafka.librdkafka.client.id=me",
                  "kafka.librdkafka.\"a.b\"=c", "log={ level = \"debug\", format = \"json\" }"}));
  CHECK(options.kafka.group == "another");
  CHECK(options.consumer.workers == 8);
  CHECK(options.postgres.pooled);
  CHECK(options.postgres.schema == "quoted");
  CHECK(options.kafka.manual_partitions == std::vector<std::int32_t>{1, 2});
  CHECK(options.kafka.librdkafka ==
        std::map<std::string, std::string>{{"client.id", "me"}, {"a.b", "c"}});
  CHECK(options.log.level == "debug");
  CHECK(options.log.format == LogFormat::kJson);
  CHECK(options.log.progress_interval == 10s);
}

TEST_CASE("a string may be set without the quotes that a shell takes away") {
  const auto* value = GENERATE("42", "true", "2026-01-31", "a b", "a=b", "1.50", "it's", "x # y");
  CAPTURE(value);
  CHECK(load(request(kRequired, {std::string{"kafka.group="} + value})).kafka.group == value);
}

TEST_CASE("a config may come from --set alone") {
  LoadRequest request;
  request.overrides = {"kafka.bootstrap_servers=h:1", "kafka.group=g", "idempotency.key={key}",
                       "handler=[{ topics = [\"t\"], sql = \"SELECT 1\" }]"};
  CHECK(load(request).handlers.at(0).topics == std::vector<std::string>{"t"});
}

TEST_CASE("the file and --set win over --default") {
  auto asked = request(kRequired);
  asked.defaults = {"kafka.group_instance_id=host-7", "kafka.group=other"};
  auto options = load(asked);
  CHECK(options.kafka.group_instance_id == "host-7");
  CHECK(options.kafka.group == "payments");
  asked.overrides = {"kafka.group_instance_id=\"\""};
  CHECK(load(asked).kafka.group_instance_id.empty());
  asked.overrides = {};
  asked.defaults = {"kafka.group_instance_id=" + std::string(250, 'x'), "kafka.grup=g", "no"};
  CHECK_THAT(messages_of(asked),
             ContainsSubstring("--default kafka.group_instance_id=") &&
                 ContainsSubstring("--default kafka.grup: ") &&
                 ContainsSubstring("--default no: no value. Write --default section.option=value"));
}

TEST_CASE("environment variables and files stand in for parts of strings") {
  const std::string folder = testing_folder();
  std::ofstream{folder + "/secret"} << "hunter2\n";
  std::ofstream{folder + "/lines"} << "a\nb\n\n";
  LoadRequest asked = request(kRequired + R"(
[kafka.librdkafka]
"sasl.username" = "${USER_NAME}"
"sasl.password" = "${file:secret}"
"ssl.key.pem" = "${file:lines}"
"client.id" = "$${USER_NAME} $$${x} ${USER_NAME}-${NUMBER} $1 $$ ${EMPTY}."
)",
                              {"handler=[{ topics = [\"${USER_NAME}\"], sql = \"SELECT 1\" }]"},
                              {{"USER_NAME", "${NUMBER}"}, {"NUMBER", "7"}, {"EMPTY", ""}});
  asked.path = folder + "/a.toml";
  asked.overrides = {"handler=[{ topics = [\"t${NUMBER}\"], sql = \"SELECT 1\" }]"};
  const Options options = load(asked);
  CHECK(options.kafka.librdkafka == std::map<std::string, std::string>{
                                        {"sasl.username", "${NUMBER}"},
                                        {"sasl.password", "hunter2"},
                                        {"ssl.key.pem", "a\nb\n"},
                                        {"client.id", "${USER_NAME} $${x} ${NUMBER}-7 $1 $$ ."}});
  CHECK(options.handlers.at(0).topics == std::vector<std::string>{"t7"});
}

TEST_CASE("a file with a byte order mark or with Windows line ends loads") {
  std::string text = "\xef\xbb\xbf" + kRequired;
  CHECK(load(request(text)).kafka.group == "payments");
  std::string windows;
  for (const char c : kRequired)
    windows += c == '\n' ? std::string{"\r\n"} : std::string{c};
  CHECK(load(request(windows)).kafka.group == "payments");
}

TEST_CASE("a file in postgres.url is read again whenever the URL is asked for") {
  const std::string folder = testing_folder();
  const auto secret = folder + "/rotated";
  const auto write = [&](const std::string& text) { std::ofstream{secret} << text; };
  write("first-secret\n");
  auto asked =
      request(kRequired + "[postgres]\nurl = \"postgresql://${USER}:${file:rotated}@db/p\"\n", {},
              {{"USER", "app"}});
  asked.path = folder + "/a.toml";
  const auto options = load(asked);
  const auto& postgres = options.postgres;
  CHECK(postgres.url == "postgresql://app:first-secret@db/p");
  CHECK(postgres.renewal.now(postgres.url) == postgres.url);
  CHECK(postgres.renewal.files == secret);
  write("second-secret");
  CHECK(postgres.renewal.now(postgres.url) == "postgresql://app:second-secret@db/p");
  // What a program has put in its place is not replaced.
  CHECK(postgres.renewal.now("postgresql://other/p") == "postgresql://other/p");

  std::filesystem::remove(secret);
  try {
    (void)postgres.renewal.now(postgres.url);
    FAIL("was read");
  } catch (const std::runtime_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("the file " + secret + " cannot be read (") &&
                                 !ContainsSubstring("secret@"));
  }

  // Nothing else is looked up twice.
  const auto plain = load(request(kRequired + "[postgres]\nurl = \"postgresql://${USER}@db/p\"\n",
                                  {}, {{"USER", "app"}}));
  CHECK_FALSE(plain.postgres.renewal.now);
}

TEST_CASE(
    "what is wrong with postgres.url in a file is left to connecting, and no more than that") {
  struct Row {
    std::string url;
    std::string content;
    std::string told;  // empty: it loads
  };
  const auto row = GENERATE(values<Row>({
      {"postgresql://app:${file:text}@db/p", "n3w@pass/100%", ""},
      {"postgresql://app:${file:text}@db/p", "100%", ""},
      {"${file:text}", "no URL", ""},
      {"host=db port=${file:text}", "none", ""},
      {"host=db sslmode=${file:text}", "require", ""},
      {"postgresql://app:${file:text}@db:none/p", "100%25", "the port is not a number"},
      {"postgresql://app:${file:text}@db/p?sslmode=on", "100%", "sslmode is not a value of libpq"},
      {"mysql://app:${file:text}@db/p", "good", "not a PostgreSQL URI"},
      {"postgresql://app:${PW}@db/p", "", "contains a % that"},
  }));
  CAPTURE(row.url, row.content);
  const std::string folder = testing_folder();
  std::ofstream{folder + "/text"} << row.content;
  auto asked = request(kRequired + "[postgres]\nurl = \"" + row.url + "\"\n", {}, {{"PW", "100%"}});
  asked.path = folder + "/a.toml";
  if (row.told.empty()) {
    auto options = load(asked);
    CHECK_NOTHROW(require_valid(options));
    // What a program has put in its place is checked.
    options.postgres.url = "postgresql://db/p?sslmode=on";
    CHECK_THROWS_AS(require_valid(options), ConfigErrors);
  } else {
    CHECK_THAT(messages_of(asked), ContainsSubstring(row.told));
  }
}

TEST_CASE("files that were read before are used again, whatever they hold by then") {
  const std::string folder = testing_folder();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream{folder + "/" + name} << text;
  };
  write("handed.toml", kRequired + "[kafka.librdkafka]\n\"sasl.password\" = \"${file:handed}\"\n");
  write("handed", "7:\xff 2:\n\n");
  auto asked = request("");
  asked.text.reset();
  asked.path = folder + "/handed.toml";
  Files files;
  asked.files = &files;
  const auto before = load(asked);
  CHECK(before.kafka.librdkafka.at("sasl.password") == "7:\xff 2:\n");

  write("handed.toml", "[kafka\n");
  std::filesystem::remove(folder + "/handed");
  auto again = Files::unpacked(files.packed());
  asked.files = &again;
  CHECK(load(asked) == before);
  asked.files = nullptr;
  CHECK_THAT(messages_of(asked), ContainsSubstring("handed.toml"));

  CHECK(Files::unpacked("").packed().empty());
  for (const auto* broken : {"x", "3", "3:ab", "1:a", "1:a9:b", "-1:a"})
    CHECK_THROWS_AS(Files::unpacked(broken), std::invalid_argument);
}
