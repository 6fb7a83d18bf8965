#include "ops/outage.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace std::chrono_literals;
using pawl::ops::Outage;

TEST_CASE("an outage is told once, and its end when all has been quiet since") {
  Outage outage(1s);
  const Outage::Clock::time_point start{};
  outage.found(start);
  CHECK_FALSE(outage.take_ended(start + 10s));

  CHECK(outage.lost(start));
  CHECK_FALSE(outage.lost(start + 1s));
  CHECK_FALSE(outage.take_ended(start + 2s));
  outage.found(start + 3s);
  // One worker is back, the next one finds it away.
  CHECK_FALSE(outage.lost(start + 3500ms));
  CHECK_FALSE(outage.take_ended(start + 10s));
  outage.found(start + 10s);
  CHECK_FALSE(outage.take_ended(start + 10900ms));
  CHECK(outage.take_ended(start + 11s) == 10s);
  CHECK_FALSE(outage.take_ended(start + 20s));
  CHECK(outage.lost(start + 30s));
}
