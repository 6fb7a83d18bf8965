#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "batch_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

// Every step of a message's way through the frame, in order.
const std::vector<std::string> kSteps{"message_fetched",     "key_claimed", "handler_returned",
                                      "offset_advancing",    "commit_sent", "message_committed",
                                      "message_deduplicated"};
// Of messages that travel together: the others are behind each other's.
const std::vector<std::string> kFlightSteps{"message_fetched", "commit_sent", "message_committed",
                                            "message_deduplicated"};

/// Of the modes with batches (modes.cpp).
constexpr int kLargestBatch = 8;

/// Kills at each step of each mode: PAWL_CRASH_ROUNDS, else few enough for every day.
int rounds() {
  const char* rounds = std::getenv("PAWL_CRASH_ROUNDS");
  return rounds != nullptr ? std::atoi(rounds) : 2;
}

}  // namespace

TEST_CASE("a process killed at any step of any message leaves balanced books") {
  const auto mode = GENERATE(from_range(modes()));
  CAPTURE(mode.name);
  PaymentsWorld world(4);
  // A member that died is gone after this; the survivors wait that long for its partitions.
  world.set_kafka_options("session_timeout = \"1s\"");
  world.use(mode);
  // The first messages are hit again and again, alone.
  world.set("failures.max_crashes=100");
  const auto& steps = mode.flies ? kFlightSteps : kSteps;
  // Behind those that run alone because of the process before.
  const int first = mode.flies || mode.batches || mode.beside ? 30 : 3;
  int in_flights = 0;

  int kills = 0;
  world.produce(2000);
  for (int round = 0; round < rounds(); ++round) {
    for (const auto& step : steps) {
      const int nth = step == "message_deduplicated" ? 1 : first + round * 7;
      // A batch takes each step once: there must be enough messages for so many.
      world.produce(mode.batches ? std::max(150, nth * kLargestBatch) : 150);
      const auto process = world.start({{"--events", "--kill", fmt::format("{}:{}", step, nth)}});
      const ShowOnFailure show(fmt::format("{} {}", step, nth), *process);
      const auto status = process->wait(60s);
      REQUIRE(status.signal == SIGKILL);
      ++kills;
      in_flights += longest_flight(*process) > 1 ? 1 : 0;
    }
  }
  REQUIRE(kills == rounds() * static_cast<int>(steps.size()));
  if (!mode.beside)
    REQUIRE((in_flights > 0) == mode.flies);
  world.drain();
  REQUIRE(world.imbalance() == "");
  REQUIRE((transactions(world) < world.number("SELECT count(*) FROM ledger")) == mode.batches);
  REQUIRE(world.produced() > 2000 + 150 * kills);
}
