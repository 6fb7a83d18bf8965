#include "ops/catching_up.hpp"

#include "prelude.hpp"

using namespace pawl::ops;

TEST_CASE("the time to catch up is known while the lag shrinks") {
  CHECK(seconds_to_catch_up(1000, 900, 1s) == 9);
  CHECK(seconds_to_catch_up(1000, 999, 1s) == 999);
  CHECK(seconds_to_catch_up(10, 3, 2s) == 1);
  CHECK(seconds_to_catch_up(10, 0, 1s) == 0);
  CHECK(seconds_to_catch_up(0, 0, 0s) == 0);
  CHECK(seconds_to_catch_up(10, 10, 1s) == std::nullopt);
  CHECK(seconds_to_catch_up(10, 11, 1s) == std::nullopt);
  CHECK(seconds_to_catch_up(10, 9, 0s) == std::nullopt);
}

TEST_CASE("a span of time is told in units that a person reads") {
  CHECK(span_text(45) == "45 s");
  CHECK(span_text(180) == "3 min");
  CHECK(span_text(2 * 3600 + 5 * 60) == "2 h 5 min");
  CHECK(span_text(4 * 86400 + 2 * 3600) == "4 d 2 h");
}
