#include "ops/repeat_limiter.hpp"
#include "prelude.hpp"

using namespace pawl::ops;

namespace {

Incident failed(const std::string& topic, const std::string& sqlstate = "23503") {
  return {"attempt_failed", topic, "write-invoice", sqlstate};
}

}  // namespace

TEST_CASE("one line per incident and interval is admitted, and the others are counted") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  CHECK(limiter.admit(failed("a"), start));
  CHECK_FALSE(limiter.admit(failed("a"), start + 1s));
  CHECK_FALSE(limiter.admit(failed("a"), start + 59s));
  CHECK(limiter.admit(failed("b"), start + 59s));
  CHECK(limiter.take_held(start + 59s).empty());

  const auto held = limiter.take_held(start + 60s);
  REQUIRE(held.size() == 1);
  CHECK(held[0].incident == failed("a"));
  CHECK(held[0].lines == 2);
  CHECK(held[0].period == 60s);

  // What was just reported is held back for another interval; what stayed away is forgotten.
  CHECK_FALSE(limiter.admit(failed("a"), start + 61s));
  CHECK(limiter.take_held(start + 119s).empty());
  CHECK(limiter.admit(failed("b"), start + 121s));
}

TEST_CASE("another event, topic, handler, SQLSTATE, or text is another incident") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  const Incident first{"attempt_failed", "t", "h", "", "HTTP status 401"};
  CHECK(limiter.admit(first, start));
  for (const auto& other : {Incident{"retry_scheduled", "t", "h", "", "HTTP status 401"},
                            Incident{"attempt_failed", "u", "h", "", "HTTP status 401"},
                            Incident{"attempt_failed", "t", "g", "", "HTTP status 401"},
                            Incident{"attempt_failed", "t", "h", "23503"},
                            Incident{"attempt_failed", "t", "h", "", "HTTP status 500"}})
    CHECK(limiter.admit(other, start));
  CHECK_FALSE(limiter.admit(first, start));
}

TEST_CASE("what is held back of a topic is reported before its interval is over, of no other one") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  for (const auto& incident : {failed("t"), failed("t", "22P02"), failed("tt"), failed("s")})
    limiter.admit(incident, start);
  for (const auto& incident : {failed("t"), failed("t"), failed("tt"), failed("s")})
    limiter.admit(incident, start + 2s);
  const auto held = limiter.take_held_of("t", start + 3s);
  REQUIRE(held.size() == 1);
  CHECK(held[0].incident == failed("t"));
  CHECK(held[0].lines == 2);
  CHECK(held[0].period == 3s);
  CHECK(limiter.take_held_of("t", start + 3s).empty());
  CHECK(limiter.take_held(start + 60s).size() == 2);
}

TEST_CASE("what is held back at the end is reported then") {
  RepeatLimiter limiter(60s);
  const RepeatLimiter::Clock::time_point start{};
  limiter.admit(failed("a"), start);
  limiter.admit(failed("a"), start);
  CHECK(limiter.take_held(start).empty());
  const auto held = limiter.take_held(start, true);
  REQUIRE(held.size() == 1);
  CHECK(held[0].lines == 1);
}
