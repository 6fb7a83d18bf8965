#include "engine/run_gate.hpp"

#include <atomic>
#include <thread>

#include "prelude.hpp"

using pawl::engine::RunGate;

TEST_CASE("many run at once while there is no suspect") {
  RunGate gate;
  const auto one = gate.among_others();
  const auto two = gate.among_others();
  CHECK(one);
  CHECK(two);
}

TEST_CASE("a suspect waits for those that run, and keeps new ones out until it has run") {
  RunGate gate;
  const int suspect = 0;
  auto running = gate.among_others();
  REQUIRE(running);
  CHECK_FALSE(gate.alone(&suspect));
  CHECK_FALSE(gate.among_others());
  running = {};
  auto alone = gate.alone(&suspect);
  REQUIRE(alone);
  CHECK_FALSE(gate.among_others());
  const int another = 0;
  CHECK_FALSE(gate.alone(&another));
  alone = {};
  CHECK(gate.among_others());
}

TEST_CASE("a suspect that never comes back for its turn keeps nobody out for long") {
  RunGate gate;
  const int suspect = 0;
  auto running = gate.among_others();
  CHECK_FALSE(gate.alone(&suspect));
  running = {};
  pawl::testing::wait_until([&] { return static_cast<bool>(gate.among_others()); }, 30s,
                            "the gate to open again");
}

TEST_CASE("whatever the threads do, a suspect is alone") {
  RunGate gate;
  std::atomic<int> inside{0};
  std::atomic<bool> shared{false};
  std::atomic<int> suspects_done{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      int runs = 0;
      while (runs < 2000) {
        const bool suspect = t == 0 || (t == 1 && runs % 3 == 0);
        const auto pass = suspect ? gate.alone(&runs) : gate.among_others();
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
        suspects_done += suspect ? 1 : 0;
        ++runs;
      }
    });
  }
  threads.clear();
  CHECK_FALSE(shared);
  CHECK(suspects_done > 2000);
}
