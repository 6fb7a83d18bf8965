#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <array>

#include "payments_world.hpp"

using namespace std::chrono_literals;
using pawl::test::PaymentsWorld;

namespace {

// Every step of a message's way through the frame, in order.
constexpr std::array kSteps{"fetched",    "claimed",   "handled",  "advancing",
                            "committing", "committed", "duplicate"};

}  // namespace

TEST_CASE("a process killed at any step of any message leaves balanced books") {
  PaymentsWorld world(4);
  // A member that died is gone after this; the survivors wait that long for its partitions.
  world.set_kafka_options("session_timeout = \"1s\"");
  const bool code_handler = GENERATE_COPY(false, true);
  if (code_handler)
    world.use_handler("name = \"payment\"");

  int kills = 0;
  world.produce(2000);
  for (int round = 0; round < 8; ++round) {
    for (const auto* step : kSteps) {
      world.produce(150);
      const int nth = step == std::string_view("duplicate") ? 1 : 3 + round * 5;
      const auto process = world.start({{"--kill", fmt::format("{}:{}", step, nth)}});
      const auto status = process->wait(60s);
      INFO(step << " " << nth << "\n" << process->output());
      REQUIRE(status.signal == SIGKILL);
      ++kills;
    }
  }
  REQUIRE(kills == 56);
  world.drain();
  REQUIRE(world.imbalance() == "");
  REQUIRE(world.produced() > 10000);
}
