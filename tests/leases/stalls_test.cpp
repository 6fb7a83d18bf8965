// Processes and servers that stand still, or come back, around a call.
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// The sessions of a PostgreSQL server that is the test's own stand still, and on demand the server
/// too, so that no new one can be made.
class Frozen {
 public:
  enum class What { kSessions, kServer };
  Frozen(const PaymentsWorld& world, What what) {
    if (what == What::kServer) {
      pids_.push_back(static_cast<pid_t>(
          world.number("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)")));
    }
    std::istringstream sessions(
        world.value("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity"
                    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"));
    for (pid_t pid = 0; sessions >> pid;)
      pids_.push_back(pid);
    for (const auto pid : pids_)
      ::kill(pid, SIGSTOP);
  }
  ~Frozen() {
    for (const auto pid : pids_)
      ::kill(pid, SIGCONT);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  std::vector<pid_t> pids_;
};

}  // namespace

TEST_CASE("a process that wakes up behind its lease, before its call, does not call") {
  PaymentApi api(false);
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.produce_one("event", 1, 0);
  const auto frozen = charging.start({"--events", "--freeze", "lease_acquired:1"});
  const ShowOnFailure show("frozen", *frozen);
  wait_until_stopped(*frozen, 60s);
  CHECK(charging.leases() == 1);
  CHECK(api.call_count() == 0);
  const auto next = charging.start();
  const ShowOnFailure show_next("next", *next);
  world.wait_until_all_processed();
  frozen->kill(SIGCONT);
  // It has looked at its lease, and does without the call.
  frozen->wait_for_output("EVENT call_finished", 60s);
  stop_cleanly(*frozen);
  stop_cleanly(*next);
  CHECK(api.call_count() == 1);
  CHECK(charging.counts() == "1 0 0");
  CHECK(charging.leases() == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.lease_losses") == 0);
}

TEST_CASE("a call is told to end before its lease does, whatever PostgreSQL is at") {
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  PostgresServer server;
  ChargingWorld charging(1, api, &server);
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  {
    const Frozen frozen(world, Frozen::What::kServer);
    process->wait_for_output("EVENT call_finished", 60s);
  }
  api.release();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 2);
  CHECK(api.charges() == 1);
  CHECK(charging.stored() == "1 1");
  CHECK(charging.leases() == 0);
}

TEST_CASE("a lease is extended over a new session when the old one stands still") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  PostgresServer server;
  ChargingWorld charging(1, api, &server);
  auto& world = charging.world();
  world.set("calls.lease_time=6s");
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  const auto until = world.value("SELECT lease_until FROM pawl.leases");
  const auto is_extended_by = [&](const std::string& time) {
    return world.value(fmt::format("SELECT lease_until > '{}'::timestamptz + interval '{}' FROM "
                                   "pawl.leases",
                                   until, time)) == "t";
  };
  // The session for that is there.
  wait_until([&] { return is_extended_by("1s"); }, 60s, "the lease to be extended");
  {
    const Frozen frozen(world, Frozen::What::kSessions);
    wait_until([&] { return is_extended_by("9s"); }, 60s, "the lease to be extended again");
    api.release();
  }
  world.wait_until_all_processed();
  CHECK(api.call_count() == 1);
  CHECK(charging.finished() == 1);
}

TEST_CASE("a lease whose answer was lost does not keep its message waiting, nor count as a call") {
  // In the log's order, and beside others.
  const std::string order = GENERATE("", "concurrency = 4\norder_by = \"{header:event-id}\"\n");
  CAPTURE(order);
  PaymentApi api(false);
  ChargingWorld charging(1, api);
  charging.use("charge", order + "on_unknown = \"halt\"");
  auto& world = charging.world();
  world.set("calls.lease_time=10m");
  world.produce_one("event", 1, 0);
  std::atomic<std::uint64_t> asking{0};
  PostgresProxy proxy(world.url());
  proxy.cut(Moment::kBefore, [&asking](const ProxyEvent& event) {
    if (event.text.find("acquire_lease(") != std::string::npos)
      asking = event.connection;
    return false;
  });
  const auto lost = proxy.cut(Moment::kAfter, [&asking](const ProxyEvent& event) {
    return event.commit && event.connection == asking;
  });
  const auto process = charging.start({}, {}, proxy.url());
  const ShowOnFailure show("consumer", *process);
  lost.wait(60s);
  world.wait_until_all_processed();
  CHECK(api.call_count() == 1);
  CHECK(charging.stored() == "1 1");
  CHECK(charging.leases() == 0);
}

TEST_CASE("messages that were called when their process died are called one at a time") {
  std::atomic<bool> died{false};
  const PaymentApi* served = nullptr;
  std::atomic<int> beside{0};
  PaymentApi api(true, [&](const ApiCall& call) {
    if (!died)
      return ApiAnswer{.stall = true};
    if (call.event().starts_with("first") && served->in_hand() > 1)
      ++beside;
    return ApiAnswer{.delay = 100ms};
  });
  served = &api;
  ChargingWorld charging(1, api);
  charging.use("charge", "concurrency = 4\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  for (int i = 0; i < 4; ++i)
    world.produce_one(fmt::format("first-{}", i), 1, 0);
  {
    const auto process = charging.start();
    const ShowOnFailure show("killed", *process);
    wait_for_calls(api, 4);
    process->kill(SIGKILL);
    process->wait(20s);
  }
  died = true;
  api.release();
  wait_until([&] { return api.in_hand() == 0; }, 60s, "the answers to the dead");
  for (int i = 0; i < 8; ++i)
    world.produce_one(fmt::format("later-{}", i), 1, 0);
  world.execute("UPDATE pawl.leases SET lease_until = clock_timestamp()");
  charging.drain();
  CHECK(api.call_count() == 16);
  CHECK(beside == 0);
  CHECK(api.charges() == 12);
  CHECK(charging.counts() == "12 0 0");
}

TEST_CASE("a retry later keeps what its call brought when PostgreSQL restarts") {
  PaymentApi api(true, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.charge = false, .status = 500} : ApiAnswer{.stall = true};
  });
  PostgresServer server;
  ChargingWorld charging(1, api, &server);
  charging.use(
      "charge",
      "on_failure = \"retry-later\"\nmax_attempts = 1\nretry_later = [\"1s\", \"1s\", \"1s\"]");
  auto& world = charging.world();
  world.set("calls.lease_time=60s");
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 2);
  server.stop(StopMode::kImmediate);
  api.release();
  wait_until([&] { return api.in_hand() == 0; }, 60s, "the call to end");
  server.start();
  wait_until([&] { return charging.stored() == "1 1"; }, 120s, "the answer to be stored");
  CHECK(api.call_count() == 2);
  CHECK(charging.leases() == 0);
}

TEST_CASE("an operator's replay keeps what its call brought when PostgreSQL restarts") {
  PaymentApi api(true, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.charge = false, .status = 422} : ApiAnswer{.stall = true};
  });
  PostgresServer server;
  ChargingWorld charging(1, api, &server);
  auto& world = charging.world();
  world.use_handler(fmt::format(
      "http = {{ url = \"{}/charges\", headers = {{ Event-Id = \"{{header:event-id}}\" }} }}\n"
      "on_failure = \"dead-letter\"",
      api.url()));
  world.produce_one("event", 1, 0);
  charging.drain();
  REQUIRE(world.number("SELECT count(*) FROM pawl.dead_letters") == 1);
  const TempDir folder;
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config();
  ChildProcess replay(
      PAWL_PROGRAM,
      {"dlq", "replay", "--all", "--config", config.string(), "--set", "calls.lease_time=60s"},
      {.output = folder.path() / "replay"});
  const ShowOnFailure show("replay", replay);
  wait_for_calls(api, 2);
  server.stop(StopMode::kImmediate);
  api.release();
  replay.wait_for_output("the call has returned, but its outcome is not recorded yet", 60s);
  server.start();
  // Its own session is gone, so the command goes no further than this letter.
  replay.wait(120s);
  CHECK(world.value("SELECT status FROM pawl.dead_letters") == "replayed");
  CHECK(api.call_count() == 2);
  CHECK(charging.stored() == "1 1");
  CHECK(charging.leases() == 0);
}

TEST_CASE("status shows how many calls are in flight, and how many have an unknown outcome") {
  PaymentApi api(true, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.use_handler(
      fmt::format("http = {{ url = \"{}/charges\" }}\nconcurrency = 3\n"
                  "order_by = \"{{header:event-id}}\"",
                  api.url()));
  world.set("calls.lease_time=60s");
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const TempDir folder;
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config();
  const auto status = [&](const std::string& more) {
    ChildProcess child(PAWL_PROGRAM, {"status", "--config", config.string(), more},
                       {.output = folder.path() / "status"});
    child.wait(60s);
    return child.output();
  };
  const auto process = charging.start();
  const ShowOnFailure show("killed", *process);
  wait_for_calls(api, 3);
  CHECK_THAT(status("--json"), ContainsSubstring("\"in_flight\": 3"));
  CHECK_THAT(status("--all"), ContainsSubstring("\nCALLS           3 in flight\n"));
  process->kill(SIGKILL);
  process->wait(20s);
  world.execute("UPDATE pawl.leases SET lease_until = clock_timestamp() WHERE key <> 'event-0'");
  world.execute(
      "SELECT pawl.resolve_lease(scope_id, key, true, 'ok') FROM pawl.leases"
      " WHERE key = 'event-1'");
  const auto text = status("--all");
  CHECK_THAT(text, ContainsSubstring("1 unowned") &&
                       ContainsSubstring(fmt::format(
                           "\nCALLS           1 in flight, 1 done, not recorded yet, 1 with an "
                           "unknown outcome\n                > pawl calls list --config {} "
                           "--unknown\n",
                           config.string())));
  CHECK_THAT(status("--json"), ContainsSubstring("\"unknown\": 1"));
}

TEST_CASE("a dead letter's call is shown with its letter, and losses are acknowledged") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.charge = false, .status = 422}; });
  ChargingWorld charging(1, api);
  charging.use("charge", "on_failure = \"dead-letter\"");
  auto& world = charging.world();
  world.produce_one("refused", 1, 0);
  charging.drain();
  REQUIRE(charging.leases() == 1);
  const TempDir folder;
  const auto config = folder.path() / "pawl.toml";
  std::ofstream(config) << world.config();
  int runs = 0;
  const auto leases = [&](std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.begin(), "calls");
    arguments.insert(arguments.end(), {"--config", config.string()});
    ChildProcess child(PAWL_PROGRAM, arguments, {.output = folder.path() / std::to_string(++runs)});
    CHECK(child.wait(60s).code == code);
    return child.output();
  };
  CHECK_THAT(leases({"list"}), ContainsSubstring("waiting, dead letter #1 "));
  CHECK_THAT(leases({"list", "--json"}), ContainsSubstring("\"dead_letter_id\": 1"));
  CHECK_THAT(
      leases({"resolve", "refused", "--done"}),
      ContainsSubstring("Its message is a dead letter. Replay it:\n  pawl dlq replay --config " +
                        config.string() + " 1"));

  const auto lose = [&](const std::string& key) {
    world.execute(fmt::format(
        "INSERT INTO pawl.lease_losses (scope_id, key, owner, attempt, returned, source_id,"
        " partition, kafka_offset) SELECT scope_id, '{}', 'one', 1, true, source_id, 0, 0"
        " FROM pawl.leases",
        key));
  };
  lose("first");
  lose("second");
  CHECK_THAT(leases({"list", "--lost"}), ContainsSubstring("first") && ContainsSubstring("second"));
  CHECK_THAT(leases({"acknowledge"}, 2), ContainsSubstring("or --all"));
  CHECK_THAT(leases({"acknowledge", "1", "9"}, 1),
             ContainsSubstring("acknowledged 1") &&
                 ContainsSubstring("1 of them do not exist for this consumer"));
  const auto left = leases({"list", "--lost"});
  CHECK_THAT(left, !ContainsSubstring("first") && ContainsSubstring("second"));
  CHECK_THAT(leases({"acknowledge", "--all"}), ContainsSubstring("acknowledged 1"));
  CHECK_THAT(leases({"list", "--lost"}), ContainsSubstring("No call has lost its lease."));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A sanitizer's own library has to be the first that is loaded.
TEST_CASE("leases do not depend on the clocks of processes, which may be hours apart") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.produce_one("event", 1, 0);
  // LD_PRELOAD ends a path at a space; LD_LIBRARY_PATH, where a bare name is looked for, does not.
  const std::filesystem::path clock = PAWL_SHIFTED_CLOCK;
  const auto with_clock = [&](const std::string& shift, const std::string& told) {
    auto process = charging.start({"--events"}, {{"LD_PRELOAD", clock.filename().string()},
                                                 {"LD_LIBRARY_PATH", clock.parent_path().string()},
                                                 {"PAWL_TEST_CLOCK_SHIFT", shift}});
    process->wait_for_output("CLOCK " + told, 60s);
    return process;
  };
  // Whose clock is behind must not take its lease for ended, nor the other one for lasting.
  const auto behind = with_clock("-3600", "behind");
  const ShowOnFailure show("behind", *behind);
  wait_for_calls(api, 1);
  const auto until = world.value("SELECT lease_until FROM pawl.leases");
  const auto ahead = with_clock("3600", "ahead");
  const ShowOnFailure show_ahead("ahead", *ahead);
  // For longer than a lease lasts that is not extended.
  wait_until(
      [&] {
        return world.value(fmt::format("SELECT lease_until > '{}'::timestamptz + interval '4s' "
                                       "FROM pawl.leases",
                                       until)) == "t";
      },
      60s, "the lease to be extended");
  // The next one takes the partition over, and waits for the call.
  behind->kill(SIGSTOP);
  wait_until([&] { return api.call_count() == 2; }, 60s, "the next call, behind the lease");
  CHECK(world.value("SELECT lease_until < clock_timestamp() + interval '1 minute' FROM "
                    "pawl.leases") == "t");
  behind->kill(SIGCONT);
  api.release();
  world.wait_until_all_processed();
  CHECK(charging.finished() == 1);
  CHECK(charging.stored() == "1 1");
}
#endif
