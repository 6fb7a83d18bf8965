#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "site.hpp"

using namespace pawl::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// It asks no server for anything.
Outcome config_show(std::vector<std::string> arguments, const Environment& environment = {}) {
  const TempDir folder("cli");
  const auto out = folder.path() / "out";
  const auto err = folder.path() / "err";
  arguments.insert(arguments.begin(), {"config", "show"});
  ChildProcess child(
      PAWL_PROGRAM, arguments,
      {.environment = environment, .output = out, .errors = err, .working_directory = {}});
  const auto status = child.wait(kDeadline);
  return {status.code.value_or(-1), read_file(out), read_file(err)};
}

/// The line of an option, in its section; spaces as one.
std::string line_of(const std::string& printed, const std::string& section,
                    const std::string& name) {
  const auto begin = printed.find(section + "\n");
  REQUIRE(begin != std::string::npos);
  const auto at = printed.find("\n" + name + " = ", begin);
  REQUIRE(at != std::string::npos);
  std::string line;
  for (const char c : printed.substr(at + 1, printed.find('\n', at + 1) - at - 1)) {
    if (c != ' ' || !line.ends_with(' '))
      line += c;
  }
  return line;
}

constexpr const char* kConfig = R"([kafka]
bootstrap_servers = "127.0.0.1:9"
group = "g"
[kafka.librdkafka]
"sasl.password" = "hunter2"
"client.id" = "me"
[postgres]
url = "postgresql://app:hunter2@db/p"
[idempotency]
key = "{key}"
scope = "${SCOPE}"
[failures]
max_attempts = 7
[[handler]]
topics = ["t"]
sql = ["SELECT 1"]
on_failure = "park"
)";

}  // namespace

TEST_CASE("config show prints each option with its place, without secrets") {
  const TempDir folder("cli");
  const auto path = (folder.path() / "a.toml").string();
  write_file(path, kConfig);
  const auto shown =
      config_show({"--config", path, "--set", "consumer.workers=3"}, {{"SCOPE", "hunter2"}});
  INFO(shown.out);
  CHECK(shown.code == 0);
  CHECK(shown.err.empty());
  CHECK_THAT(shown.out, StartsWith("[kafka]\n") && !ContainsSubstring("hunter2"));
  CHECK(line_of(shown.out, "[kafka]", "group") == "group = \"g\" # " + path + ":3");
  CHECK(line_of(shown.out, "[kafka]", "cluster") == "cluster = \"default\" # default");
  CHECK(line_of(shown.out, "[kafka.librdkafka]", "\"client.id\"") ==
        "\"client.id\" = \"me\" # " + path + ":6");
  CHECK(line_of(shown.out, "[kafka.librdkafka]", "\"sasl.password\"") ==
        "\"sasl.password\" = \"***\" # " + path + ":5");
  CHECK(line_of(shown.out, "[postgres]", "url") ==
        "url = \"user=app password=*** dbname=p host=db\" # " + path + ":8");
  CHECK(line_of(shown.out, "[idempotency]", "scope") == "scope = \"${SCOPE}\" # " + path + ":11");
  CHECK(line_of(shown.out, "[consumer]", "workers") == "workers = 3 # --set consumer.workers");
  CHECK(line_of(shown.out, "[[handler]]  # handler[0]", "on_failure") ==
        "on_failure = \"park\" # " + path + ":17");
}

TEST_CASE("what config show prints is a config of the same values") {
  const TempDir folder("cli");
  const auto path = (folder.path() / "a.toml").string();
  const auto again = (folder.path() / "b.toml").string();
  write_file(path, kConfig);
  const std::vector<std::string> arguments{
      "--config", path, "--set", "postgres.url=host=db", "--set", "idempotency.scope=s", "--json"};
  const Environment environment{{"SCOPE", "unused"}};
  const auto first = config_show(arguments, environment);
  REQUIRE(first.code == 0);
  auto text = arguments;
  text.pop_back();
  write_file(again, config_show(text, environment).out);
  const auto second = config_show({"--config", again, "--json"});
  INFO(second.err);
  REQUIRE(second.code == 0);
  const auto values = [](const std::string& json) {
    std::map<std::string, nlohmann::json> found;
    const auto document = nlohmann::json::parse(json);
    for (const auto& option : document.at("options"))
      found[option.at("option")] = option.at("value");
    return found;
  };
  CHECK(values(first.out) == values(second.out));
  CHECK(values(first.out).at("handler[0].max_attempts") == 7);
  CHECK(values(first.out).at("kafka.known_consumers") == nlohmann::json::array());
}

TEST_CASE("config show without a file prints the defaults, and tells what is wrong") {
  const auto defaults = config_show({"--json"});
  CHECK(defaults.code == 0);
  const auto document = nlohmann::json::parse(defaults.out);
  CHECK(document.at("options").size() > 60);
  for (const auto& option : document.at("options")) {
    CAPTURE(option.dump());
    CHECK(option.at("from") == "default");
    CHECK(option.at("inherited").is_null());
  }
  const auto wrong = config_show({"--set", "consumer.workers=0"});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK_THAT(wrong.err, ContainsSubstring("--set consumer.workers=0: out of range"));
  const auto missing = config_show({"--config", "no/such/file.toml"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, ContainsSubstring("no/such/file.toml"));
}
