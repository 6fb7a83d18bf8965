// Processes killed at every step of a call: what was charged, recorded and known afterwards.
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <set>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Of the process, in the order in which a message meets them; "calling": the API kills it, behind
/// the charge.
const std::vector<std::string> kSteps{"message_fetched", "lease_acquired",    "calling",
                                      "call_finished",   "key_claimed",       "offset_advancing",
                                      "commit_sent",     "message_committed", "handler_returned"};

/// PAWL_CRASH_ROUNDS, else few enough for every day.
int rounds() {
  const char* rounds = std::getenv("PAWL_CRASH_ROUNDS");
  return rounds == nullptr ? 1 : std::stoi(rounds);
}

/// Kills the process that calls, when it has called so often.
struct Assassin {
  std::atomic<int> calls_left{0};
  std::atomic<pid_t> victim{0};

  void call_came() {
    if (calls_left > 0 && --calls_left == 0)
      ::kill(victim, SIGKILL);
  }
};

}  // namespace

TEST_CASE("a process killed at any step of a call leaves each message recorded once") {
  struct Row {
    std::string on_unknown;
    bool dedupes;
  };
  const auto [on_unknown, dedupes] =
      GENERATE(Row{"call", true}, Row{"reconcile", false}, Row{"call", false});
  CAPTURE(on_unknown, dedupes);
  Assassin assassin;
  PaymentApi api(dedupes, [&](const ApiCall&) {
    assassin.call_came();
    return ApiAnswer{};
  });
  ChargingWorld charging(2, api);
  charging.use("charge_and_record",
               fmt::format("concurrency = 8\non_unknown = \"{}\"", on_unknown));
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set("calls.lease_time=60s");
  // What was in hand at a kill is no message's fault.
  world.set("failures.max_attempts=0");
  int kills = 0;
  int most_doubled = 0;
  std::set<std::string> listed;
  for (int round = 0; round < rounds(); ++round) {
    for (const auto& step : kSteps) {
      world.produce(40);
      const int nth = 1 + (round * 7 + kills) % 23;
      std::vector<std::string> arguments{"--events"};
      if (step != "calling")
        arguments.insert(arguments.end(), {"--kill", fmt::format("{}:{}", step, nth)});
      const auto process = charging.start(arguments);
      const ShowOnFailure show(fmt::format("{} {}", step, nth), *process);
      if (step == "calling") {
        assassin.victim = process->pid();
        assassin.calls_left = nth;
      }
      const auto end = process->wait(120s);
      REQUIRE(end.signal == SIGKILL);
      ++kills;
      // Whoever is unknown is listed, and nobody waits for the time of the dead.
      const auto held = world.value(
          "SELECT coalesce(string_agg(key, ','), '') FROM pawl.leases WHERE owner IS NOT NULL");
      std::istringstream keys(held);
      for (std::string key; std::getline(keys, key, ',');) {
        listed.insert(key);
        ++most_doubled;
      }
      world.execute("UPDATE pawl.leases SET lease_until = clock_timestamp()");
    }
  }
  REQUIRE(kills == rounds() * static_cast<int>(kSteps.size()));
  charging.drain();

  CHECK(world.imbalance() == "");
  const auto keys = world.number("SELECT count(*) FROM pawl.idempotency_keys");
  CHECK(charging.stored() == fmt::format("{} {}", keys, keys));
  CHECK(charging.leases() == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.lease_losses") == 0);
  CHECK(world.number("SELECT sum(dead_count) FROM pawl.processed_kafka_offsets") == 0);
  std::map<std::string, std::string> event_of;
  for (const auto& call : api.calls())
    event_of[call.key()] = call.headers.at("event-id");
  const auto charges = api.charges_by_key();
  CHECK(static_cast<std::int64_t>(charges.size()) == keys);
  for (const auto& [key, count] : charges) {
    if (count == 1)
      continue;
    INFO(event_of[key]);
    // Only where the API neither knows repetitions nor is asked, and never unknown to us.
    CHECK((!dedupes && on_unknown == "call"));
    CHECK(listed.contains(event_of[key]));
  }
  CHECK(api.charges() - keys <= most_doubled);
}
