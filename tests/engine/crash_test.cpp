#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <string>
#include <vector>

#include "payments_world.hpp"

using namespace std::chrono_literals;
using pawl::test::PaymentsWorld;

namespace {

// Every step of a message's way through the frame, in order.
const std::vector<std::string> kSteps{"fetched",    "claimed",   "handled",  "advancing",
                                      "committing", "committed", "duplicate"};
// Of messages that travel together: the others are behind each other's.
const std::vector<std::string> kFlightSteps{"fetched", "committing", "committed", "duplicate"};

}  // namespace

TEST_CASE("a process killed at any step of any message leaves balanced books") {
  PaymentsWorld world(4);
  // A member that died is gone after this; the survivors wait that long for its partitions.
  world.set_kafka_options("session_timeout = \"1s\"");
  const std::string mode = GENERATE("sql", "code", "pipelined", "replayable");
  CAPTURE(mode);
  // The first messages are hit again and again, alone.
  world.set("failures.max_crashes=100");
  if (mode == "code")
    world.use_handler("name = \"payment\"");
  if (mode == "sql")
    world.set("consumer.pipeline=1");
  if (mode == "replayable")
    world.set("consumer.durability=replayable");
  const auto& steps = mode == "sql" || mode == "code" ? kSteps : kFlightSteps;

  int kills = 0;
  world.produce(2000);
  for (int round = 0; round < 8; ++round) {
    for (const auto& step : steps) {
      world.produce(150);
      const int nth = step == "duplicate" ? 1 : 3 + round * 5;
      const auto process = world.start({{"--kill", fmt::format("{}:{}", step, nth)}});
      const auto status = process->wait(60s);
      INFO(step << " " << nth << "\n" << process->output());
      REQUIRE(status.signal == SIGKILL);
      ++kills;
    }
  }
  REQUIRE(kills == 8 * static_cast<int>(steps.size()));
  world.drain();
  REQUIRE(world.imbalance() == "");
  REQUIRE(world.produced() > 2000 + 150 * kills);
}
