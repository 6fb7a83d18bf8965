#include "engine/breaker.hpp"

#include <atomic>
#include <thread>

#include "prelude.hpp"

using pawl::engine::Breaker;

namespace {

void count(Breaker& breaker, const std::string& handler, const std::string& way, int times) {
  for (int i = 0; i < times; ++i)
    breaker.count(handler, way);
}

}  // namespace

TEST_CASE("so many messages in a row may fail in one way and be set aside, and no more") {
  Breaker breaker;
  CHECK(breaker.allows("payments", "23505", 3));
  count(breaker, "payments", "23505", 2);
  CHECK(breaker.allows("payments", "23505", 3));
  count(breaker, "payments", "23505", 1);
  CHECK_FALSE(breaker.allows("payments", "23505", 3));
  // Who asks with another bound is answered by that.
  CHECK(breaker.allows("payments", "23505", 4));
  CHECK_FALSE(breaker.allows("payments", "23505", 1));
}

TEST_CASE("without a bound every message may be set aside") {
  Breaker breaker;
  count(breaker, "payments", "23505", 1000);
  CHECK(breaker.allows("payments", "23505", 0));
}

TEST_CASE("a message that was applied ends the row") {
  Breaker breaker;
  count(breaker, "payments", "23505", 3);
  breaker.applied("payments");
  CHECK(breaker.allows("payments", "23505", 1));
  count(breaker, "payments", "23505", 1);
  CHECK_FALSE(breaker.allows("payments", "23505", 1));
}

TEST_CASE("a failure of another kind begins another row") {
  Breaker breaker;
  count(breaker, "payments", "23505", 3);
  CHECK(breaker.allows("payments", "22P02", 3));
  count(breaker, "payments", "22P02", 1);
  // The first row is over: it takes as many again.
  CHECK(breaker.allows("payments", "23505", 1));
  count(breaker, "payments", "23505", 1);
  CHECK(breaker.allows("payments", "23505", 2));
  CHECK_FALSE(breaker.allows("payments", "23505", 1));
}

TEST_CASE("handlers are counted apart") {
  Breaker breaker;
  count(breaker, "payments", "23505", 2);
  count(breaker, "refunds", "23505", 1);
  CHECK_FALSE(breaker.allows("payments", "23505", 2));
  CHECK(breaker.allows("refunds", "23505", 2));
  CHECK(breaker.allows("unheard of", "23505", 1));
  // One that works again says nothing of the other.
  breaker.applied("refunds");
  CHECK_FALSE(breaker.allows("payments", "23505", 2));
  breaker.applied("payments");
  CHECK(breaker.allows("payments", "23505", 1));
}

TEST_CASE("no message that threads set aside at the same moment goes uncounted") {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  Breaker breaker;
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads)
        std::this_thread::yield();
      for (int n = 0; n < kEach; ++n) {
        breaker.count("payments", "23505");
        breaker.applied("refunds");
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK_FALSE(breaker.allows("payments", "23505", kThreads * kEach));
  CHECK(breaker.allows("payments", "23505", kThreads * kEach + 1));
}
