// SIGHUP, and what a service manager is told.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <pqxx/pqxx>

#include "prelude.hpp"
#include "site.hpp"

namespace {

/// A service manager's socket.
class Manager {
 public:
  Manager() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Manager() { ::close(socket_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  [[nodiscard]] std::string path() const { return (folder_.path() / "notify").string(); }

  /// Reads until it is told that; returns what came before it.
  std::vector<std::string> wait_for(const std::string& text) {
    std::vector<std::string> told;
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (std::chrono::steady_clock::now() < deadline) {
      pollfd watched{socket_, POLLIN, 0};
      if (::poll(&watched, 1, 100) != 1)
        continue;
      std::array<char, 4096> buffer{};
      const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
      told.emplace_back(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
      if (told.back().starts_with(text))
        return told;
    }
    FAIL("was not told " << text);
    return told;
  }

 private:
  TempDir folder_{"manager"};
  int socket_;
};

bool was_told(const std::vector<std::string>& told, const std::string& text) {
  return std::any_of(told.begin(), told.end(),
                     [&](const std::string& one) { return one.starts_with(text); });
}

}  // namespace

TEST_CASE("a reload begins anew with the configuration as it is now, under the same process id") {
  Site site;
  Manager manager;
  const TempDir folder("reload");
  const auto config = site.config();
  ChildProcess child(PAWL_PROGRAM, {"run", "--config", config.string()},
                     {.environment = {{"NOTIFY_SOCKET", manager.path()},
                                      {"WATCHDOG_USEC", "2000000"},
                                      {"WATCHDOG_PID", std::nullopt}},
                      .output = folder.path() / "output"});
  const auto pid = child.pid();
  manager.wait_for("READY=1");
  manager.wait_for("WATCHDOG=1");
  site.pay(0, "first", "a", "1");
  site.wait_for_stored(0, 0);
  manager.wait_for("STATUS=1 partition");

  SECTION("one that cannot be used is told, and nothing changes") {
    const auto before = read_file(config);
    write_file(config, before + "\n[consumer]\nconcurrency = \"many\"\n");
    child.kill(SIGHUP);
    child.wait_for_output("configuration_rejected", kDeadline);
    CHECK_THAT(child.output(), ContainsSubstring("consumer.concurrency"));
    site.pay(0, "second", "a", "1");
    site.wait_for_stored(0, 1);
    CHECK(site.sql("SELECT count(*) FROM ledger") == "2");
    write_file(config, before);
  }
  SECTION("one whose command cannot be run neither") {
    const auto before = read_file(config);
    write_file(config, before + "\n[alerts]\ncommand = [\"/nowhere/page\"]\n");
    child.kill(SIGHUP);
    child.wait_for_output("configuration_rejected", kDeadline);
    CHECK_THAT(child.output(), ContainsSubstring("alerts.command"));
    site.pay(0, "second", "a", "1");
    site.wait_for_stored(0, 1);
    write_file(config, before);
  }
  SECTION("one that is good is used") {
    auto text = read_file(config);
    const auto amount = text.find("{/amount}::bigint)");
    REQUIRE(amount != std::string::npos);
    write_file(config, text.replace(amount, 17, "{/amount}::bigint + 99"));
    child.kill(SIGHUP);
    CHECK_FALSE(was_told(manager.wait_for("RELOADING=1\nMONOTONIC_USEC="), "STOPPING"));
    manager.wait_for("READY=1");
    site.pay(0, "second", "a", "1");
    site.wait_for_stored(0, 1);
    CHECK(site.sql("SELECT amount FROM ledger WHERE event_id = 'second'") == "100");
    manager.wait_for("WATCHDOG=1");
  }
  CHECK(child.pid() == pid);
  child.kill(SIGTERM);
  manager.wait_for("STOPPING=1");
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("a reload begins with the text that was checked, whatever the file holds by then") {
  Site site;
  const TempDir folder("reload");
  const auto config = site.config();
  ChildProcess child(PAWL_PROGRAM, {"run", "--config", config.string()},
                     {.output = folder.path() / "output"});
  site.pay(0, "first", "a", "1");
  site.wait_for_stored(0, 0);
  // A message in hand keeps the process from its end until the file is broken.
  pqxx::connection holder(site.url);
  pqxx::work lock(holder);
  lock.exec("LOCK TABLE ledger");
  site.pay(0, "in-hand", "a", "1");
  site.wait_for_sql("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted", "t");

  auto text = read_file(config);
  const auto amount = text.find("{/amount}::bigint)");
  REQUIRE(amount != std::string::npos);
  write_file(config, text.replace(amount, 17, "{/amount}::bigint + 99"));
  child.kill(SIGHUP);
  child.wait_for_output("configuration_reloaded", kDeadline);
  write_file(config, "[kafka\n");
  lock.abort();

  wait_until([&] { return occurrences(child.output(), " consumer_started ") == 2; }, kDeadline,
             "the process to begin anew");
  site.pay(0, "second", "a", "1");
  site.wait_for_stored(0, 2);
  CHECK(site.sql("SELECT amount FROM ledger WHERE event_id = 'second'") == "100");
  // The next reload reads the file again.
  child.kill(SIGHUP);
  child.wait_for_output("configuration_rejected", kDeadline);
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("a reload does not end a process that cannot end in time") {
  Site site;
  // What is told of the halt hangs for longer than an end waits.
  site.more = "\n[alerts]\ncommand = [\"/bin/sleep\", \"60\"]\n";
  Manager manager;
  const TempDir folder("reload");
  ChildProcess child(
      PAWL_PROGRAM, {"run", "--config", site.config().string(), "--set", "failures.max_attempts=1"},
      {.environment = {{"NOTIFY_SOCKET", manager.path()}}, .output = folder.path() / "output"});
  manager.wait_for("READY=1");
  site.pay(0, "bad", "a", "\"no number\"");
  child.wait_for_output("partition_halted", kDeadline);
  child.kill(SIGHUP);
  manager.wait_for("RELOADING=1");
  manager.wait_for("READY=1");
  CHECK(child.running());
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("an end that is asked for behind a reload is an end") {
  Site site;
  // What is told of the halt hangs for longer than an end waits.
  site.more = "\n[alerts]\ncommand = [\"/bin/sleep\", \"60\"]\n";
  const TempDir folder("reload");
  ChildProcess child(
      PAWL_PROGRAM, {"run", "--config", site.config().string(), "--set", "failures.max_attempts=1"},
      {.output = folder.path() / "output"});
  site.pay(0, "bad", "a", "\"no number\"");
  child.wait_for_output("partition_halted", kDeadline);
  child.kill(SIGHUP);
  child.wait_for_output("all in-flight messages finished", kDeadline);
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
  CHECK(occurrences(child.output(), " consumer_started ") == 1);
}

TEST_CASE("a relay begins anew as well") {
  Site site;
  Manager manager;
  const TempDir folder("reload");
  ChildProcess child(
      PAWL_PROGRAM, {"relay", "--config", site.config().string()},
      {.environment = {{"NOTIFY_SOCKET", manager.path()}}, .output = folder.path() / "output"});
  manager.wait_for("READY=1");
  child.kill(SIGHUP);
  manager.wait_for("RELOADING=1");
  manager.wait_for("READY=1");
  child.kill(SIGTERM);
  CHECK(child.wait(kDeadline) == ExitStatus{.code = 0, .signal = {}});
}

TEST_CASE("migrate takes the database and the schema from the configuration") {
  Site site;
  site.postgres_lines = "schema = \"books\"\n";
  CHECK_THAT(
      site.run({"migrate", "status"}).out,
      ContainsSubstring("To apply: pawl migrate up --config ") && ContainsSubstring("pawl.toml\n"));
  const auto up = site.run({"migrate", "up"});
  CHECK(up.code == 0);
  CHECK(site.sql("SELECT count(*) > 5 FROM books.schema_migrations") == "t");
  CHECK(site.run({"migrate", "status", "--exit-code"}).code == 0);
  CHECK_THAT(site.run({"migrate", "status"}).out, !ContainsSubstring("pending: "));
  const auto grants = site.run({"migrate", "grants", "--role", "app"});
  CHECK(grants.code == 0);
  CHECK_THAT(grants.out, ContainsSubstring("ON SCHEMA books TO \"app\""));
  CHECK(site.run_bare({"migrate", "up", "--lock-timeout", "soon"}).code == 2);
  CHECK_THAT(site.run_bare({"migrate", "up", "--dir", "nowhere"}).err,
             ContainsSubstring("--dir without --name"));
  const auto absent = site.run_bare({"migrate", "status"}, {{"PAWL_MIGRATE", "/nowhere/migrate"}});
  CHECK(absent.code == 1);
  CHECK_THAT(absent.err, ContainsSubstring("cannot run /nowhere/migrate"));
}
