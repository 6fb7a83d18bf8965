// What texts say is to be done can be pasted into a shell as it stands.
#include <csignal>
#include <cstdlib>
#include <regex>

#include "config/invocation.hpp"
#include "prelude.hpp"
#include "site.hpp"

namespace {

/// The first match of a pattern in a text.
std::string command_in(const std::string& text, const std::string& pattern) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex(pattern)));
  return found.str();
}

int run_in_shell(const std::string& command, const std::filesystem::path& output = {}) {
  const std::filesystem::path program = PAWL_PAYMENTS;
  ChildProcess shell("/bin/sh", {"-c", command},
                     {.environment = {{"PATH", program.parent_path().string() + ":" +
                                                   std::string(std::getenv("PATH"))}},
                      .output = output});
  return shell.wait(kDeadline).code.value_or(-1);
}

}  // namespace

TEST_CASE("the commands of a halt name the program and its configuration, and a shell runs them") {
  Site site;
  const TempDir folder("pasted");
  const auto config = folder.path() / "it's my file.toml";
  write_file(config, read_file(site.config()));
  site.pay(0, "good", "a", "1");
  site.pay(0, "bad", "a", "\"no number\"");
  site.pay(0, "behind", "a", "1");
  ChildProcess payments(PAWL_PAYMENTS,
                        {"run", "--config", config.string(), "--set", "failures.max_attempts=2",
                         "--set", "failures.retry_initial=10ms"},
                        {.output = folder.path() / "log"});
  site.wait_for_sql("SELECT state FROM pawl.processed_kafka_offsets", "halted");
  payments.wait_for_output("partitions skip", kDeadline);
  const auto log = payments.output();
  INFO(log);
  SECTION("resume, which tries the message once more") {
    const auto before = site.sql("SELECT max(history_id) FROM pawl.offset_history");
    CHECK(run_in_shell(command_in(log, "payments partitions resume .*?--partition 0")) == 0);
    site.wait_for_sql(
        "SELECT string_agg(action, ' ' ORDER BY history_id) FROM pawl.offset_history "
        "WHERE history_id > " +
            before,
        "resume halt");
  }
  SECTION("skip") {
    auto command = command_in(log, "payments partitions skip .*?--because TEXT");
    // The reason is what only the operator knows.
    CHECK(run_in_shell(command) == 2);
    command.replace(command.rfind("TEXT"), 4, "'no number'");
    CHECK(run_in_shell(command) == 0);
    site.wait_for_stored(0, 2);
  }
  payments.kill(SIGTERM);
  CHECK(payments.wait(kDeadline).success());
}

TEST_CASE("a halt whose error has a DETAIL names the command that shows it") {
  Site site;
  site.sql("ALTER TABLE ledger ADD CONSTRAINT known CHECK (account <> 'stranger')");
  site.pay(0, "e0", "stranger", "1");
  const auto run = site.run({"run", "--drain", "--set", "failures.max_attempts=1"});
  REQUIRE(run.code == 4);
  INFO(run.err);
  CHECK(site.sql("SELECT strpos(row_to_json(r)::text, 'Failing row contains') FROM"
                 " pawl.processed_kafka_offsets r") == "0");
  const TempDir folder("pasted");
  const auto output = folder.path() / "output";
  CHECK(run_in_shell(command_in(run.err, "pawl try .*?--offset 0"), output) == 1);
  CHECK_THAT(read_file(output), ContainsSubstring("Failing row contains"));
}

TEST_CASE("a command that is to be pasted quotes what a shell would take apart") {
  const pawl::InvocationOptions known{"my program", "/etc/pawl/it's my file.toml", {}};
  CHECK(pawl::command_text(known, "offsets set") ==
        R"('my program' offsets set --config '/etc/pawl/it'\''s my file.toml')");
  CHECK(pawl::command_text({}, "check") == "pawl check --config FILE");
  auto other = known;
  other.overrides = {"kafka.group=another one"};
  CHECK(pawl::command_text(other, "check") ==
        command_text(known, "check") + " --set 'kafka.group=another one'");
  // PAWL_CONFIG names the file.
  other.config_in_environment = true;
  CHECK(command_text(other, "check") == "'my program' check --set 'kafka.group=another one'");
  other.overrides = {};
  CHECK(command_text(other, "check") == "'my program' check");
  CHECK(pawl::partition_words({"orders", 3}) == "--topic orders --partition 3");
  CHECK(pawl::partition_words({"a b", 3}) == "--topic 'a b' --partition 3");
  CHECK(pawl::short_partition_words({"a b", 3}) == "-t 'a b' -p 3");
}
