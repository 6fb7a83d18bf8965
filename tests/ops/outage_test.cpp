#include "ops/outage.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace std::chrono_literals;
using pawl::ops::Outage;

TEST_CASE("an outage is told once, and its end when all has been quiet since") {
  Outage outage(1s);
  const Outage::Clock::time_point start{};
  outage.found(start);
  CHECK_FALSE(outage.take_ended(start + 10s));

  CHECK_FALSE(outage.fails("terminating"));
  CHECK(outage.lost(start, "terminating"));
  CHECK_FALSE(outage.lost(start + 1s, "terminating"));
  CHECK_FALSE(outage.take_ended(start + 2s));
  outage.found(start + 3s);
  // One worker is back, the next one finds it away.
  CHECK_FALSE(outage.lost(start + 3500ms, "terminating"));
  CHECK_FALSE(outage.take_ended(start + 10s));
  outage.found(start + 10s);
  CHECK_FALSE(outage.take_ended(start + 10900ms));
  CHECK(outage.take_ended(start + 11s) == 10s);
  CHECK_FALSE(outage.take_ended(start + 20s));
  CHECK(outage.lost(start + 30s, "terminating"));
}

TEST_CASE("an outage has the latest reason, and each is told once") {
  Outage outage(1s);
  const Outage::Clock::time_point start{};
  CHECK_FALSE(outage.standing(start));
  CHECK(outage.lost(start, "terminating"));
  CHECK(outage.fails("wrong password"));
  // Another worker's session breaks, from before the password was rotated.
  CHECK_FALSE(outage.lost(start + 1s, "server closed the connection"));
  CHECK_FALSE(outage.fails("wrong password"));
  REQUIRE(outage.standing(start + 90s));
  CHECK(outage.standing(start + 90s)->lasts == 90s);
  CHECK(outage.standing(start + 90s)->why == "wrong password");
  CHECK_FALSE(outage.lost(start + 90s, "terminating"));
  CHECK(outage.standing(start + 90s)->why == "wrong password");
  // Who has not heard yet that it is back does not begin it again.
  outage.found(start + 91s);
  CHECK_FALSE(outage.standing(start + 91s));
  CHECK_FALSE(outage.fails("refused"));
  CHECK(outage.take_ended(start + 92s) == 91s);
  CHECK(outage.lost(start + 100s, "terminating"));
  // One reason in many words.
  int told = 1;
  for (int i = 0; i < 20; ++i)
    told += outage.fails("process " + std::to_string(i)) ? 1 : 0;
  CHECK(told == 8);
  CHECK(outage.standing(start + 100s)->why == "process 19");
}
