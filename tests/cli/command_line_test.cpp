#include "prelude.hpp"
#include "site.hpp"

namespace {

/// For command lines that need no servers.
Outcome invoke(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  const TempDir folder("cli");
  const auto out = folder.path() / "out";
  const auto err = folder.path() / "err";
  Environment all{{"PAWL_CONFIG", std::nullopt}};
  for (const auto& [name, value] : environment)
    all[name] = value;
  ChildProcess child(PAWL_PROGRAM, arguments,
                     {.environment = all, .output = out, .errors = err, .working_directory = {}});
  const auto status = child.wait(kDeadline);
  return {status.code.value_or(-1), read_file(out), read_file(err)};
}

}  // namespace

TEST_CASE("without arguments there is a page that helps, and exit code 0") {
  const auto outcome = invoke({});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("\nUsage: pawl COMMAND [OPTIONS]\n") &&
                              ContainsSubstring("offsets") && ContainsSubstring("partitions") &&
                              ContainsSubstring("check") && ContainsSubstring("Exit status"));
  CHECK(outcome.err.empty());
  CHECK(invoke({"--help"}).out == outcome.out);
}

TEST_CASE("a group of commands without one of them shows what there is") {
  const auto outcome = invoke({"offsets"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("show") && ContainsSubstring("reset"));
}

TEST_CASE("the placeholder of a reason in a pasted command is no reason") {
  using Words = std::vector<std::string>;
  for (const auto& words :
       {Words{"dlq", "discard", "1"}, Words{"outbox", "discard", "1"},
        Words{"partitions", "pause", "--all"}, Words{"partitions", "resume", "--all"},
        Words{"partitions", "skip", "--topic", "t", "--partition", "0", "--offset", "1"},
        Words{"offsets", "reset", "--topic", "t", "--to", "earliest"},
        Words{"consumers", "remove", "g"}, Words{"try", "--commit"}}) {
    auto arguments = words;
    arguments.insert(arguments.end(), {"--config", "x", "--because", "TEXT"});
    CAPTURE(arguments);
    const auto outcome = invoke(arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err,
               ContainsSubstring("error: invalid value for --because: \"TEXT\". Use the reason "
                                 "itself, in quotes\n"));
  }
}

TEST_CASE("a number out of its range is reported with the option's name and the range") {
  using Words = std::vector<std::string>;
  for (const auto& words : {Words{"outbox", "list"}, Words{"skipped", "list"}, Words{"dlq", "list"},
                            Words{"dlq", "parked"}, Words{"dlq", "replay"}}) {
    for (const std::string value : {"0", "-1", "1000001", "1.5", "many"}) {
      auto arguments = words;
      arguments.insert(arguments.end(), {"--config", "x", "--limit", value});
      CAPTURE(arguments);
      const auto outcome = invoke(arguments);
      CHECK(outcome.code == 2);
      const bool whole = value != "1.5" && value != "many";
      CHECK_THAT(outcome.err,
                 ContainsSubstring("error: invalid value for --limit: \"" + value + "\". Use a " +
                                   (whole ? "number from 1 to 1000000" : "whole number")));
    }
  }
  CHECK_THAT(invoke({"keys", "estimate", "--config", "x", "--rate", "0"}).err,
             ContainsSubstring("--rate: \"0\". Use a number greater than 0"));
  CHECK_THAT(invoke({"skipped", "list", "--config", "x", "-p", "-1"}).err,
             ContainsSubstring("--partition: \"-1\". Use a number of 0 or more"));
  // None of them silently becomes another number.
  for (const auto& words :
       {Words{"dlq", "show", "--config", "x", "99999999999999999999"},
        Words{"partitions", "skip", "--config", "x", "--offset", "99999999999999999999"}}) {
    const auto outcome = invoke(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("\"99999999999999999999\". Use a number from -9223"));
  }
}

TEST_CASE("a word that an option does not have is reported with those that it has") {
  CHECK(invoke({"dlq", "list", "--config", "x", "--status", "foo"}).err ==
        "error: invalid value for --status: \"foo\". Use unresolved, scheduled, dead, parked, "
        "replayed, discarded, or all\n"
        "  Usage: pawl dlq list --config FILE\n");
}

TEST_CASE("every command explains itself") {
  const auto words = GENERATE(
      std::vector<std::string>{"run"}, std::vector<std::string>{"check"},
      std::vector<std::string>{"audit"}, std::vector<std::string>{"config", "show"},
      std::vector<std::string>{"offsets", "show"}, std::vector<std::string>{"offsets", "set"},
      std::vector<std::string>{"offsets", "reset"}, std::vector<std::string>{"partitions", "pause"},
      std::vector<std::string>{"partitions", "resume"},
      std::vector<std::string>{"partitions", "skip"});
  auto arguments = words;
  arguments.emplace_back("--help");
  const auto outcome = invoke(arguments);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("--config") && ContainsSubstring("--set"));
  for (const auto& word : words)
    CHECK_THAT(outcome.out, ContainsSubstring(word));
}

TEST_CASE("a wrong command line is told clearly, with exit code 2 and nothing on stdout") {
  const auto arguments = GENERATE(std::vector<std::string>{"rnu"}, std::vector<std::string>{"run"},
                                  std::vector<std::string>{"run", "--config"},
                                  std::vector<std::string>{"run", "--nonsense"},
                                  std::vector<std::string>{"offsets", "sohw"},
                                  std::vector<std::string>{"offsets", "set", "--config", "x",
                                                           "--topic", "t", "--partition", "-1"},
                                  std::vector<std::string>{"offsets", "set", "--config", "x",
                                                           "--topic", "t", "--partition", "one"},
                                  std::vector<std::string>{"partitions", "skip", "--config", "x",
                                                           "--topic", "t", "--partition", "0"});
  const auto outcome = invoke(arguments);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err,
             Catch::Matchers::StartsWith("error: ") && ContainsSubstring("\n  Usage: pawl "));
}

TEST_CASE("unknown words are reported before what is missing") {
  CHECK(invoke({"run", "--confg", "x"}).err ==
        "error: unknown option --confg. Did you mean --config?\n"
        "  Usage: pawl run --config FILE\n");
  CHECK(invoke({"rum", "--config", "F"}).err ==
        "error: unknown command rum. Did you mean run?\n"
        "  Usage: pawl COMMAND\n");
  CHECK_THAT(invoke({"offsets", "sohw"}).err, ContainsSubstring("Did you mean show?"));
  CHECK(invoke({"run", "--config"}).err ==
        "error: --config requires a value\n"
        "  Usage: pawl run --config FILE\n");
}

TEST_CASE("help of an unknown command fails") {
  for (const auto& words : {std::vector<std::string>{"nosuch", "--help"},
                            std::vector<std::string>{"dlq", "nosuch", "-h"}}) {
    const auto outcome = invoke(words);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring("error: unknown command nosuch\n"));
  }
}

TEST_CASE("PAWL_CONFIG is the default of --config") {
  CHECK(invoke({"status"}).err ==
        "error: --config is required (or set PAWL_CONFIG)\n"
        "  Usage: pawl status --config FILE\n");
  for (const auto& words : {std::vector<std::string>{"status"}, {"migrate", "status"}}) {
    const auto named = invoke(words, {{"PAWL_CONFIG", "no/such/file.toml"}});
    CHECK(named.code == 2);
    CHECK_THAT(named.err, ContainsSubstring("no/such/file.toml"));
  }
  const auto given =
      invoke({"status", "-c", "another.toml"}, {{"PAWL_CONFIG", "no/such/file.toml"}});
  CHECK(given.code == 2);
  CHECK_THAT(given.err, ContainsSubstring("another.toml") && !ContainsSubstring("no/such"));
}

TEST_CASE("a configuration that is missing or wrong is told with its place, exit code 2") {
  const auto missing = invoke({"run", "--config", "no/such/file.toml"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, ContainsSubstring("no/such/file.toml"));

  const TempDir folder("cli");
  const auto path = folder.path() / "wrong.toml";
  write_file(path, "[kafka]\nbootstrap_server = \"x\"\n");
  const auto wrong = invoke({"run", "--config", path.string()});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("wrong.toml:2") &&
                            ContainsSubstring("bootstrap_servers") &&
                            ContainsSubstring("kafka.group"));
}

TEST_CASE("brokers with a scheme are told with what to write, exit code 2") {
  using Words = std::vector<std::string>;
  const TempDir folder("cli");
  const auto path = (folder.path() / "scheme.toml").string();
  write_file(path,
             "[kafka]\nbootstrap_servers = \"127.0.0.1:9,ssl://127.0.0.1:9\"\ngroup = \"g\"\n"
             "[postgres]\nurl = \"postgresql://127.0.0.1:9/x\"\n"
             "[idempotency]\nkey = \"{key}\"\n"
             "[[handler]]\ntopics = [\"t\"]\nsql = [\"SELECT 1\"]\n");
  for (const auto& words :
       {Words{"run", "--config", path}, Words{"check", "--config", path},
        Words{"relay", "--config", path}, Words{"status", "--config", path},
        Words{"init", "--topic", "t", "--bootstrap-servers", "127.0.0.1:9,ssl://127.0.0.1:9"}}) {
    CAPTURE(words);
    const auto outcome = invoke(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.out + outcome.err,
               ContainsSubstring("kafka.bootstrap_servers = \"127.0.0.1:9,ssl://127.0.0.1:9\": "
                                 "broker 2 of the list has a scheme (://). Use host:port only, and "
                                 "set \"security.protocol\" = \"ssl\" in [kafka.librdkafka]"));
  }
}

TEST_CASE("a handler that no code registered is told by its name, exit code 2") {
  const TempDir folder("cli");
  const auto path = folder.path() / "code.toml";
  write_file(path,
             "[kafka]\nbootstrap_servers = \"127.0.0.1:9\"\ngroup = \"g\"\n"
             "[postgres]\nurl = \"postgresql://127.0.0.1:9/x\"\n"
             "[idempotency]\nkey = \"{key}\"\n"
             "[[handler]]\nname = \"payment\"\ntopics = [\"t\"]\n");
  const auto outcome = invoke({"run", "--config", path.string()});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("\"payment\""));
}

TEST_CASE("a property that librdkafka refuses is told by its name, exit code 2") {
  const TempDir folder("cli");
  const auto path = folder.path() / "property.toml";
  write_file(path,
             "[kafka]\nbootstrap_servers = \"127.0.0.1:9\"\ngroup = \"g\"\n"
             "[kafka.librdkafka]\n\"security.protocol\" = \"nonsense\"\n\"no.such\" = \"1\"\n"
             "[postgres]\nurl = \"postgresql://127.0.0.1:9/x\"\n"
             "[idempotency]\nkey = \"{key}\"\n"
             "[[handler]]\ntopics = [\"t\"]\nsql = [\"SELECT 1\"]\n");
  const auto outcome = invoke({"run", "--config", path.string()});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("property.toml:5: ") &&
                              ContainsSubstring("kafka.librdkafka.security.protocol") &&
                              ContainsSubstring("property.toml:6: ") &&
                              ContainsSubstring("no such property"));
}

TEST_CASE("version names the program, its libraries and the schema that it serves") {
  const auto outcome = invoke({"version"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("libpqxx") && ContainsSubstring("librdkafka") &&
                              ContainsSubstring("libpq ") && ContainsSubstring("schema"));
  // Strangers' requests reach it, and versions before this one can be stopped by one.
  CHECK_THAT(outcome.out,
             Catch::Matchers::Matches("[^]*httplib    (0\\.(4[1-9]|[5-9][0-9])|[1-9])[^]*"));
  CHECK_THAT(invoke({"--version"}).out, ContainsSubstring("pawl"));
}

TEST_CASE("completion and the manual page have every command") {
  CHECK_THAT(
      invoke({"completion", "bash"}).out,
      ContainsSubstring("'pawl dlq erase') words='--config --set --record-key --dry-run --json "
                        "--help'") &&
          ContainsSubstring("'pawl calls') words='list show resolve acknowledge --help'"));
  CHECK_THAT(invoke({"manual"}).out, ContainsSubstring(".SS pawl calls resolve\n") &&
                                         ContainsSubstring("\\fB\\-\\-because\\fR"));
}
