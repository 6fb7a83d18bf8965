// No command prints a secret, whatever is wrong with postgres.url: libpq's own texts quote the
// input, and a password that is not encoded may stand in any part of it.
#include <csignal>

#include "prelude.hpp"
#include "site.hpp"

namespace {

constexpr const char* kSecret = "hunter2";

const std::vector<std::vector<std::string>> kCommands{
    {"check"},
    {"status"},
    {"audit"},
    {"dlq", "list"},
    {"dlq", "show", "1"},
    {"dlq", "replay", "1"},
    {"dlq", "discard", "1", "--because", "never paid"},
    {"dlq", "export"},
    {"dlq", "import", "/dev/null"},
    {"dlq", "parked"},
    {"dlq", "erase", "--record-key", "customer"},
    {"skipped", "list"},
    {"offsets", "show"},
    {"offsets", "set", "--topic", "t", "--partition", "0", "--to", "1"},
    {"offsets", "reset", "--topic", "t"},
    {"partitions", "pause", "--topic", "t", "--partition", "0"},
    {"partitions", "resume", "--topic", "t", "--partition", "0"},
    {"partitions", "skip", "--topic", "t", "--partition", "0", "--offset", "1", "--because", "x"},
    {"partitions", "peek", "--topic", "t", "--partition", "0"},
    {"keys", "show", "key"},
    {"keys", "estimate", "--rate", "1"},
    {"prune"},
};

void check_hidden(const std::string& printed) {
  CHECK_THAT(printed, !ContainsSubstring(kSecret));
}

/// Not by the parser of command lines or by the configuration: then nothing was tried.
void check_failed_at_connecting(const Outcome& outcome) {
  CHECK(outcome.code != 0);
  CHECK(outcome.code != 2);
}

}  // namespace

TEST_CASE("a postgres.url that libpq cannot read is refused at load, and shown by no command") {
  // None of them asks a server for anything.
  const std::vector<std::string> urls{
      "postgresql://app:p%zzhunter2@127.0.0.1:9/p",
      "postgresql://app:hunter2%@127.0.0.1:9/p",
      "postgresql://app:hunter2%00@127.0.0.1:9/p",
      "postgresql://app:pw@[::1hunter2/p",
      "postgresql://app:pa ss@word:hunter2@127.0.0.1:9/p",
      "postgresql://app:p@hunter2@127.0.0.1:9/p",
      "postgresql://app:pa/hunter2@127.0.0.1:9/p",
      "postgresql://app:12/hunter2@127.0.0.1:9/p",
      "postgresql://app:pw@127.0.0.1:hunter2/p",
      "postgresql://127.0.0.1:9/p?hunter2=x",
      "postgresql://127.0.0.1:9/p?pasword=hunter2",
      "postgresql://127.0.0.1:9/p?password",
      "postgresql://127.0.0.1:9/p?password=a&hunter2",
      "postgresql://127.0.0.1:9/p?password=a=hunter2",
      "postgresql://127.0.0.1:9/p?sslmode=hunter2",
      "postgresql://127.0.0.1:9/p?target_session_attrs=hunter2",
      "postgresql://127.0.0.1:9/p?connect_timeout=hunter2",
      "postgresql://127.0.0.1:9/p?keepalives_idle=hunter2",
      "host=127.0.0.1 port=9 password=pa hunter2 dbname=p",
      "host=127.0.0.1 port=9 password=pa hunter2=x",
      "host=127.0.0.1 port=9 password='hunter2",
      "host=127.0.0.1 port=hunter2",
      "host=127.0.0.1 port=9 pasword=hunter2",
      "hunter2 = ",
  };
  Site site;
  for (const auto& url : urls) {
    CAPTURE(url);
    site.url = url;
    auto commands = kCommands;
    commands.push_back({"run", "--drain"});
    commands.push_back({"config", "show"});
    for (const auto& command : commands) {
      CAPTURE(command);
      // `run` that takes it for a server that is away would wait for ever.
      const auto outcome = site.run(command);
      check_hidden(outcome.out + outcome.err);
      if (command.front() == "check") {
        CHECK(outcome.code != 0);
      } else {
        CHECK(outcome.code == 2);
      }
      CHECK_THAT(outcome.out + outcome.err, ContainsSubstring("postgres.url"));
    }
  }
}

TEST_CASE("a connection that fails is told by every command without what may be a secret") {
  Site site;
  const auto server = "127.0.0.1:" + std::to_string(PostgresServer::shared().port());
  const std::vector<std::string> urls{
      "postgresql://app:hunter2@127.0.0.1:9/p",
      "postgresql://[app:hunter2@127.0.0.1:9/p",
      "postgresql://app:hunter2@" + server + "/p",
      "postgresql://app@" + server + "/p?password=hunter2&options=-c%20hunter2%3D1",
      "postgresql://app@" + server + "/p?options=--hunter2",
      "postgresql://app@" + server + "/p?channel_binding=hunter2",
      "host=127.0.0.1 port=9 user=app password='hunter2 pw' ssl_min_protocol_version=hunter2",
  };
  for (const auto& url : urls) {
    CAPTURE(url);
    site.url = url;
    for (const auto& command : kCommands) {
      CAPTURE(command);
      const auto outcome = site.run(command);
      check_hidden(outcome.out + outcome.err);
      check_failed_at_connecting(outcome);
    }
    const auto running = site.start();
    running->wait_for_output(" database_unreachable: ", kDeadline);
    running->kill(SIGTERM);
    running->wait(kDeadline);
    check_hidden(running->output());
  }
}

TEST_CASE("a secret of libpq's environment is shown by no command") {
  Site site;
  const auto service = site.config().parent_path() / "services";
  write_file(service, "[elsewhere]\nhost=127.0.0.1\nport=9\npassword=hunter2\nsslmode=hunter2\n");
  const std::vector<std::pair<std::string, Environment>> environments{
      {"host=127.0.0.1 port=9", {{"PGPASSWORD", kSecret}}},
      {"host=127.0.0.1", {{"PGPORT", kSecret}}},
      {"host=127.0.0.1 port=9", {{"PGSSLMODE", kSecret}}},
      {"service=elsewhere", {{"PGSERVICEFILE", service.string()}}}};
  for (const auto& [url, environment] : environments) {
    CAPTURE(url);
    site.url = url;
    for (const auto& command : kCommands) {
      CAPTURE(command);
      const auto outcome = site.run(command, environment);
      check_hidden(outcome.out + outcome.err);
      check_failed_at_connecting(outcome);
    }
  }
}
