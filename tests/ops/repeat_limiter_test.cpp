#include "ops/repeat_limiter.hpp"
#include "prelude.hpp"

using namespace pawl::ops;

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
