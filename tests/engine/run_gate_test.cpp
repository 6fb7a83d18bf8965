#include "engine/run_gate.hpp"

#include <atomic>
#include <thread>

#include "prelude.hpp"

using pawl::engine::RunGate;

namespace {

const pawl::TopicPartition kPartition{"payments", 0};

}  // namespace

TEST_CASE("many run at once while there is no suspect") {
  RunGate gate;
  const auto one = gate.among_others();
  const auto two = gate.among_others();
  CHECK(one);
  CHECK(two);
}

TEST_CASE("a suspect waits for those that run, and keeps new ones out until it has run") {
  RunGate gate;
  auto running = gate.among_others();
  REQUIRE(running);
  CHECK_FALSE(gate.alone(kPartition));
  CHECK_FALSE(gate.among_others());
  running = {};
  const auto alone = gate.alone(kPartition);
  REQUIRE(alone);
  CHECK_FALSE(gate.among_others());
  CHECK_FALSE(gate.among_others(1ms));
  CHECK_FALSE(gate.alone(kPartition));
}

TEST_CASE("a message that runs no code waits for no suspect, and keeps none waiting") {
  RunGate gate;
  const auto before = gate.beside_all();
  REQUIRE(before);
  const auto alone = gate.alone(kPartition);
  REQUIRE(alone);
  {
    const auto beside = gate.beside_all();
    CHECK(beside);
  }
  // That ended nothing of the suspect's.
  CHECK_FALSE(gate.among_others());
}

TEST_CASE("a suspect that never comes back for its turn keeps nobody out for long") {
  RunGate gate;
  auto running = gate.among_others();
  CHECK_FALSE(gate.alone(kPartition));
  running = {};
  pawl::testing::wait_until([&] { return static_cast<bool>(gate.among_others()); }, 30s,
                            "the gate to open again");
}

TEST_CASE("leave to run alone ends by itself if it is for a limited time") {
  RunGate gate;
  auto first = gate.alone(kPartition, RunGate::Clock::now());
  REQUIRE(first);
  // Nobody was turned away in its turn.
  const auto second = gate.alone(kPartition);
  REQUIRE(second);
  first = {};
  CHECK_FALSE(gate.among_others());
  CHECK_FALSE(gate.alone(kPartition));
}

TEST_CASE("whatever the threads do, a suspect is alone, and all come to their turns") {
  RunGate gate;
  std::atomic<int> inside{0};
  std::atomic<bool> shared{false};
  std::atomic<int> done{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const bool suspect = t < 2;
      const pawl::TopicPartition partition{"payments", t};
      for (int runs = 0; runs < 2000;) {
        const auto pass = suspect ? gate.alone(partition) : gate.among_others(20ms);
        if (!pass) {
          std::this_thread::yield();
          continue;
        }
        const int before = inside++;
        if (suspect && before != 0)
          shared = true;
        std::this_thread::yield();
        const int after = --inside;
        if (suspect && after != 0)
          shared = true;
        ++runs;
        ++done;
      }
    });
  }
  threads.clear();
  CHECK_FALSE(shared);
  CHECK(done == 8000);
}
