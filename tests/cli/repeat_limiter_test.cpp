#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "ops/partition_table.hpp"
#include "ops/repeat_limiter.hpp"

using namespace std::chrono_literals;
using pawl::ops::PartitionTable;
using pawl::ops::RepeatLimiter;

TEST_CASE("the same text passes once an interval, and is counted meanwhile") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  CHECK(limiter.admit("a", start));
  CHECK_FALSE(limiter.admit("a", start + 1s));
  CHECK_FALSE(limiter.admit("a", start + 59s));
  CHECK(limiter.admit("b", start + 59s));
  CHECK(limiter.take_held(start + 59s).empty());

  const auto held = limiter.take_held(start + 60s);
  REQUIRE(held.size() == 1);
  CHECK(held[0].text == "a");
  CHECK(held[0].times == 2);

  // What was just summed up is held back for another interval; what stayed away is forgotten.
  CHECK_FALSE(limiter.admit("a", start + 61s));
  CHECK(limiter.take_held(start + 119s).empty());
  CHECK(limiter.admit("b", start + 121s));
}

TEST_CASE("what is held back at the end is told then") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  limiter.admit("a", start);
  limiter.admit("a", start);
  CHECK(limiter.take_held(start).empty());
  const auto held = limiter.take_held(start, true);
  REQUIRE(held.size() == 1);
  CHECK(held[0].times == 1);
}

TEST_CASE("the partition table finds what was added, also after it has grown many times") {
  PartitionTable table;
  CHECK(table.find("payments", 0) == nullptr);
  for (int p = 0; p < 5000; ++p) {
    table.add("payments", p).next = p;
    table.add("refunds", p).next = -p;
  }
  CHECK(&table.add("payments", 17) == table.find("payments", 17));
  for (int p = 0; p < 5000; ++p) {
    REQUIRE(table.find("payments", p) != nullptr);
    CHECK(table.find("payments", p)->next == p);
    CHECK(table.find("refunds", p)->next == -p);
  }
  CHECK(table.all().size() == 10000);
  CHECK(table.find("other", 1) == nullptr);
}
