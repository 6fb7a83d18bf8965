#include "console/counted.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("numbers for people are grouped, and name what they count") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(counted(1, "message", "messages") == "1 message");
  CHECK(counted(0, "message", "messages") == "0 messages");
  CHECK(counted(12345, "message", "messages") == "12,345 messages");
}

TEST_CASE("a rate has one decimal below 10, so that a slow consumer is not at 0") {
  const auto [rate, text] = GENERATE(table<double, std::string>(
      {{0, "0"}, {0.3, "0.3"}, {9.94, "9.9"}, {9.96, "10"}, {10.4, "10"}, {1234.5, "1234"}}));
  CAPTURE(rate);
  CHECK(rate_number(rate) == text);
}

TEST_CASE("times for people have seconds, and the day only if it is another one") {
  CHECK(date_time("2026-11-26T17:00:24Z") == "2026-11-26 17:00:24");
  CHECK(date_time("2026-11-26T17:00:24.123Z") == "2026-11-26 17:00:24");
  CHECK(time_of_day("2026-11-26T17:00:24.123Z") == "17:00:24");
  CHECK(time_near("2026-11-26T17:00:24Z", "2026-11-26T18:00:00Z") == "17:00:24");
  CHECK(time_near("2026-11-25T17:00:24Z", "2026-11-26T18:00:00Z") == "2026-11-25 17:00:24");
  for (const auto* none : {"", "turn", "-"}) {
    CHECK(date_time(none) == none);
    CHECK(time_of_day(none) == none);
  }
}
