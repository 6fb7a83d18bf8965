#include "engine/pulse.hpp"

#include "prelude.hpp"

using pawl::engine::Pulse;
using std::chrono::milliseconds;

TEST_CASE("a pulse is silent since its last beat, and not at all while it rests") {
  const Pulse::Clock::time_point start{std::chrono::hours(1)};
  Pulse pulse;
  CHECK(pulse.rests());
  CHECK(pulse.silent_for(start) == milliseconds(0));
  {
    const Pulse::Beating beating(pulse);
    CHECK_FALSE(pulse.rests());
    pulse.beat(start);
    CHECK(pulse.silent_for(start) == milliseconds(0));
    CHECK(pulse.silent_for(start + milliseconds(1500)) == milliseconds(1500));
    pulse.beat(start + milliseconds(2000));
    CHECK(pulse.silent_for(start + milliseconds(2500)) == milliseconds(500));
    // Who looks may have read the time before the beat.
    CHECK(pulse.silent_for(start + milliseconds(1900)) == milliseconds(0));
    // A wait that has a bound is no silence before that.
    pulse.beat(start + milliseconds(9000));
    CHECK(pulse.silent_for(start + milliseconds(8000)) == milliseconds(0));
    CHECK(pulse.silent_for(start + milliseconds(9300)) == milliseconds(300));
  }
  CHECK(pulse.rests());
  CHECK(pulse.silent_for(start + milliseconds(90000)) == milliseconds(0));
}
