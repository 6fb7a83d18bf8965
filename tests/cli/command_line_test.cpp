#include "prelude.hpp"
#include "site.hpp"

namespace {

/// For command lines that need no servers.
Outcome invoke(const std::vector<std::string>& arguments) {
  const TempDir folder("cli");
  const auto out = folder.path() / "out";
  const auto err = folder.path() / "err";
  ChildProcess child(PAWL_PROGRAM, arguments,
                     {.environment = {}, .output = out, .errors = err, .working_directory = {}});
  const auto status = child.wait(kDeadline);
  return {status.code.value_or(-1), read_file(out), read_file(err)};
}

}  // namespace

TEST_CASE("without arguments there is a page that helps, and exit code 0") {
  const auto outcome = invoke({});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("pawl run --config FILE") &&
                              ContainsSubstring("offsets") && ContainsSubstring("partitions") &&
                              ContainsSubstring("check") && ContainsSubstring("Exit codes"));
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
        Words{"consumers", "forget", "g"}, Words{"try", "--commit"}}) {
    auto arguments = words;
    arguments.insert(arguments.end(), {"--config", "x", "--because", "TEXT"});
    CAPTURE(arguments);
    const auto outcome = invoke(arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err,
               ContainsSubstring("--because: TEXT stands for the reason: write why, in quotes"));
  }
}

TEST_CASE("a number out of its range is told with the option's name and the range") {
  using Words = std::vector<std::string>;
  for (const auto& words : {Words{"outbox", "list"}, Words{"skipped", "list"}, Words{"dlq", "list"},
                            Words{"dlq", "parked"}, Words{"dlq", "replay"}}) {
    for (const auto* value : {"0", "-1", "1000001", "1.5", "many"}) {
      auto arguments = words;
      arguments.insert(arguments.end(), {"--config", "x", "--limit", value});
      CAPTURE(arguments);
      const auto outcome = invoke(arguments);
      CHECK(outcome.code == 2);
      CHECK_THAT(outcome.err, ContainsSubstring(std::string("--limit: ") + value +
                                                " is not a number from 1 to 1000000"));
    }
  }
  CHECK_THAT(invoke({"keys", "estimate", "--config", "x", "--rate", "0"}).err,
             ContainsSubstring("--rate: 0 is not a number above 0"));
  CHECK_THAT(invoke({"skipped", "list", "--config", "x", "--partition", "-1"}).err,
             ContainsSubstring("--partition: -1 is not a number from 0 on"));
  // None of them becomes another number in silence.
  for (const auto& words :
       {Words{"dlq", "show", "--config", "x", "99999999999999999999"},
        Words{"partitions", "skip", "--config", "x", "--offset", "99999999999999999999"}}) {
    const auto outcome = invoke(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, ContainsSubstring("99999999999999999999 is too large"));
  }
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
  CHECK_THAT(outcome.err, ContainsSubstring("pawl") && ContainsSubstring("--help"));
}

TEST_CASE("words that are not known are told before what is missing, in their order") {
  CHECK_THAT(invoke({"run", "--confg", "x"}).err,
             ContainsSubstring("pawl run: not expected: --confg x; did you mean --config?"));
  CHECK_THAT(invoke({"rum", "--config", "F"}).err,
             ContainsSubstring("pawl: not expected: rum --config F; did you mean run?"));
  CHECK_THAT(invoke({"offsets", "sohw"}).err, ContainsSubstring("did you mean show?"));
  CHECK_THAT(invoke({"run"}).err, ContainsSubstring("--config is required"));
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

TEST_CASE("old names of options are read, and shown nowhere") {
  struct Case {
    std::vector<std::string> command;
    std::string name;
    std::string old_name;
  };
  const auto renamed = GENERATE(values<Case>({{{"offsets", "set"}, "--because", "--reason"},
                                              {{"partitions", "pause"}, "--because", "--reason"},
                                              {{"partitions", "resume"}, "--because", "--reason"},
                                              {{"partitions", "skip"}, "--because", "--reason"},
                                              {{"dlq", "erase"}, "--record-key", "--key"}}));
  auto help = renamed.command;
  help.emplace_back("--help");
  const auto shown = invoke(help).out;
  INFO(shown);
  CHECK_THAT(shown, ContainsSubstring(renamed.name) && !ContainsSubstring(renamed.old_name));
  // Known, so that something else is missing.
  auto used = renamed.command;
  used.insert(used.end(), {renamed.old_name, "x"});
  CHECK_THAT(invoke(used).err, !ContainsSubstring(renamed.old_name));
}

TEST_CASE("old names are in neither the manual page nor the completion") {
  for (const auto& arguments : {std::vector<std::string>{"manual"}, {"completion", "bash"}}) {
    const auto text = invoke(arguments).out;
    CHECK_THAT(text, ContainsSubstring("--because") || ContainsSubstring("\\-\\-because"));
  }
  CHECK_THAT(
      invoke({"completion", "bash"}).out,
      ContainsSubstring("'pawl dlq erase') words='--help --config --set --record-key --dry-run'"));
}
