// What `pawl config show` prints: each option's value, and where it comes from.
#include "config/in_force.hpp"

#include <fstream>
#include <set>

#include "config/invocation.hpp"
#include "config/values.hpp"
#include "loading.hpp"
#include "prelude.hpp"

using namespace pawl::config;

namespace {

/// "VALUE from PLACE, INHERITED" of an option; "" when it is not listed.
std::string shown(const std::vector<OptionInForce>& listed, const std::string& option) {
  for (const OptionInForce& one : listed) {
    if (one.option == option) {
      return toml_text(one.value) + " from " + one.from +
             (one.inherited.empty() ? "" : ", " + one.inherited);
    }
  }
  return "";
}

std::string all(const std::vector<OptionInForce>& listed) {
  std::string text;
  for (const OptionInForce& one : listed)
    text += one.option + " = " + toml_text(one.value) + " from " + one.from + "\n";
  return text;
}

}  // namespace

TEST_CASE("every option is listed once with its value, and where that comes from") {
  const auto listed = load_in_force(request(kRequired + R"(on_failure = "park"
[failures]
max_attempts = 7
[handler_defaults]
timeout = "2s"
[kafka.librdkafka]
client.id = "me"
)",
                                            {"consumer.workers=3", "kafka.group=other"}));
  std::set<std::string> names;
  for (const OptionInForce& one : listed)
    CHECK(names.insert(one.option).second);
  for (const OptionDescriptor& option : option_table()) {
    CAPTURE(option.option());
    if (option.section != "handler" && !option.free_table)
      CHECK(names.contains(option.option()));
    if (option.of_handler())
      CHECK(names.contains("handler[0]." + std::string(option.name)));
  }
  CHECK(shown(listed, "kafka.bootstrap_servers") == "\"localhost:9092\" from a.toml:2");
  CHECK(shown(listed, "kafka.group") == "\"other\" from --set kafka.group");
  CHECK(shown(listed, "kafka.cluster") == "\"default\" from default");
  CHECK(shown(listed, "kafka.known_consumers") == "[] from default");
  CHECK(shown(listed, "kafka.librdkafka.client.id") == "\"me\" from a.toml:18");
  CHECK(shown(listed, "consumer.workers") == "3 from --set consumer.workers");
  CHECK(shown(listed, "failures.on_failure") == "\"halt\" from default");
  CHECK(shown(listed, "handler[0].on_failure") == "\"park\" from a.toml:12");
  CHECK(shown(listed, "handler[0].max_attempts") == "7 from a.toml:14, failures.max_attempts");
  CHECK(shown(listed, "handler[0].circuit_breaker") == "50 from default, failures.circuit_breaker");
  CHECK(shown(listed, "handler[0].timeout") == "\"2s\" from a.toml:16, handler_defaults.timeout");
  CHECK(shown(listed, "handler[0].key") == "\"{header:event-id}\" from a.toml:6, idempotency.key");
  CHECK(shown(listed, "handler[0].sql") == "[\"SELECT 1\"] from a.toml:11");
}

TEST_CASE("what is listed is what was loaded, whatever the kind of the option") {
  const auto listed = load_in_force(
      request(kRequired,
              {"kafka.start=2026-01-31T12:00:00+02:00", "kafka.buffer=2048KiB", "kafka.group=42",
               "postgres.pooled=true", R"(kafka.known_consumers=["a", "b/c"])",
               "retention.keys=48h", R"(kafka.assignment="manual")", "kafka.partitions=[0, 7]",
               R"(audit.sql=["SELECT 1", { name = "sums", text = "SELECT \"x\"" }])",
               R"(handler=[{ topics = ["t"], sql = { text = "SELECT 2", expect_rows = 1 } }])"}));
  CHECK(shown(listed, "kafka.start") == "2026-01-31T10:00:00Z from --set kafka.start");
  CHECK(shown(listed, "kafka.buffer") == "\"2MiB\" from --set kafka.buffer");
  CHECK(shown(listed, "kafka.group") == "\"42\" from --set kafka.group");
  CHECK(shown(listed, "postgres.pooled") == "true from --set postgres.pooled");
  CHECK(shown(listed, "kafka.known_consumers") ==
        "[\"a\", \"b/c\"] from --set kafka.known_consumers");
  CHECK(shown(listed, "retention.keys") == "\"2d\" from --set retention.keys");
  CHECK(shown(listed, "kafka.partitions") == "[0, 7] from --set kafka.partitions");
  CHECK(shown(listed, "audit.sql") ==
        R"(["SELECT 1", { name = "sums", text = "SELECT \"x\"" }] from --set audit.sql)");
  CHECK(shown(listed, "handler[0].sql") ==
        R"([{ expect_rows = 1, text = "SELECT 2" }] from --set handler)");
}

TEST_CASE("no secret is listed, and ${...} as it was written") {
  const std::string folder = testing_folder();
  std::ofstream{folder + "/secret"} << "hunter2";
  const auto* lines = GENERATE(
      "[postgres]\nurl = \"postgresql://app:hunter2@db/p\"",
      "[postgres]\nurl = \"postgresql://app@db/p?password=hunter2\"",
      "[postgres]\nurl = \"host=db password=hunter2\"",
      "[postgres]\nurl = \"postgresql://app:${SECRET}@db/p\"",
      "[postgres]\nurl = \"postgresql://app:hunter2@${HOST}/p\"",
      "[postgres]\nurl = \"host=${HOST} password=hunter2\"",
      "[postgres]\nurl = \"${KEYWORD}=hunter2 host=db\"",
      "[postgres]\nurl = \"${PREFIX}app:hunter2@db/p\"",
      "[postgres]\nurl = \"host=db ${OPTION}hunter2\"", "[postgres]\nurl = \"${URL}\"",
      "[kafka.librdkafka]\n\"sasl.password\" = \"hunter2\"",
      "[kafka.librdkafka]\n\"sasl.password\" = \"${file:secret}\"",
      "[kafka.librdkafka]\n\"sasl.password\" = \"hunter2${HOST}\"",
      "[kafka.librdkafka]\nssl.key.password = \"hunter2\"",
      "[kafka.librdkafka]\n\"sasl.oauthbearer.config\" = \"principal=hunter2\"",
      "[kafka.librdkafka]\n\"client.id\" = \"${SECRET}\"", "[idempotency]\nscope = \"${SECRET}\"",
      "[alerts]\ncommand = [\"/bin/page\", \"--token=hunter2\", \"hunter2\"]",
      "[alerts]\ncommand = [\"/bin/page\", \"${SECRET}\", \"hunter2\"]");
  CAPTURE(lines);
  std::string text = kRequired;
  if (std::string(lines).starts_with("[idempotency]"))
    text = text.replace(text.find("[idempotency]\n"), 14, std::string(lines) + "\n");
  else
    text += std::string(lines) + "\n";
  auto asked = request(text, {},
                       {{"SECRET", "hunter2"},
                        {"HOST", "db"},
                        {"KEYWORD", "password"},
                        {"PREFIX", "postgresql://"},
                        {"OPTION", "password="},
                        {"URL", "postgresql://app:hunter2@db/p"}});
  asked.path = folder + "/a.toml";
  const std::string printed = all(load_in_force(asked));
  CHECK_THAT(printed, !ContainsSubstring("hunter2"));
  CHECK_THAT(printed, ContainsSubstring("***") || ContainsSubstring("${") ||
                          ContainsSubstring("(connection string)"));
}

TEST_CASE("what holds no secret is listed as it is") {
  const auto listed = load_in_force(
      request(kRequired + "[postgres]\nurl = \"postgresql://app:${PW}@db:5432/p?sslmode=require\"\n"
                          "[kafka.librdkafka]\n\"security.protocol\" = \"sasl_ssl\"\n"
                          "\"sasl.password\" = \"${PW}\"\n\"fetch.min.bytes\" = 5\n",
              {R"(alerts.command=["/bin/page", "a"])"}, {{"PW", "hunter2"}}));
  CHECK(shown(listed, "postgres.url") ==
        "\"user=app password=*** dbname=p host=db port=5432 sslmode=require\" from a.toml:13");
  CHECK(shown(listed, "kafka.librdkafka.security.protocol") == "\"sasl_ssl\" from a.toml:15");
  CHECK(shown(listed, "kafka.librdkafka.sasl.password") == "\"${PW}\" from a.toml:16");
  CHECK(shown(listed, "kafka.librdkafka.fetch.min.bytes") == "\"5\" from a.toml:17");
  CHECK(shown(listed, "alerts.command") == "[\"/bin/page\", \"***\"] from --set alerts.command");
}

TEST_CASE("arguments of a command that prints a secret are not listed") {
  const auto listed = load_in_force(
      request(kRequired + "[postgres]\nurl = \"postgresql://app@db/p\"\n"
                          "[kafka.librdkafka]\n\"sasl.mechanism\" = \"OAUTHBEARER\"\n",
              {R"(postgres.password_command=["/bin/get", "hunter2"])",
               R"(kafka.oauth_token_command=["/bin/token", "hunter2"])"}));
  CHECK(shown(listed, "postgres.password_command") ==
        "[\"/bin/get\", \"***\"] from --set postgres.password_command");
  CHECK(shown(listed, "kafka.oauth_token_command") ==
        "[\"/bin/token\", \"***\"] from --set kafka.oauth_token_command");
}

TEST_CASE("without a file nothing is missing, but what is said is checked") {
  LoadRequest nothing;
  nothing.complete = false;
  CHECK(shown(load_in_force(nothing), "kafka.group") == "\"\" from default");
  nothing.overrides = {"consumer.workers=0"};
  CHECK_THROWS_AS(load_in_force(nothing), pawl::ConfigErrors);
  nothing.overrides = {"consumer.workers=9"};
  CHECK(shown(load_in_force(nothing), "consumer.workers") == "9 from --set consumer.workers");
}

TEST_CASE("of --set a pasted command says again what leads to the same consumer, without secrets") {
  CHECK(pawl::overrides_to_paste(
            {"kafka.group=other", "failures.max_attempts=1",
             "postgres.url=postgresql://u:hunter2@h/db", "postgres.url=${PGURL}",
             "postgres.schema=s=1", "kafka.librdkafka.client.id=c",
             "kafka.librdkafka.sasl.password=hunter2", "kafka.unknown=hunter2",
             "redis.password=hunter2", " kafka.cluster = east ",
             "kafka.librdkafka.\"security.protocol\"=ssl", "calls.lease_store=redis",
             "idempotency.scope=shared", "monitoring.actions_token=hunter2", "log.format=json"}) ==
        std::vector<std::string>{
            "kafka.group=other", "failures.max_attempts=1",
            "postgres.url=user=u password=*** dbname=db host=h", "postgres.url=${PGURL}",
            "postgres.schema=s=1", "kafka.librdkafka.client.id=c",
            "kafka.librdkafka.sasl.password=***", "kafka.unknown=***", "redis.password=***",
            "kafka.cluster=east", "kafka.librdkafka.security.protocol=ssl",
            "calls.lease_store=redis", "idempotency.scope=shared"});
}
