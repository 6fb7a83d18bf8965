#include "console/json.hpp"

#include <limits>

#include "prelude.hpp"

using pawl::Timestamp;
using pawl::cli::Json;
using pawl::cli::json_of;
using pawl::cli::timestamp_from;

TEST_CASE("instants are RFC 3339 with milliseconds, and nothing of them is lost") {
  struct Row {
    std::int64_t milliseconds;
    Json json;
  };
  const auto row = GENERATE(values<Row>({
      {0, "1970-01-01T00:00:00.000Z"},
      {-1, "1969-12-31T23:59:59.999Z"},
      {1'769'817'600'123, "2026-01-31T00:00:00.123Z"},
      {253'402'300'799'999, "9999-12-31T23:59:59.999Z"},
      // Years that RFC 3339 cannot express: a producer that counts nanoseconds.
      {253'402'300'800'000, 253'402'300'800'000},
      {1'769'817'600'000'000'000, 1'769'817'600'000'000'000},
      {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()},
  }));
  const Timestamp time{std::chrono::milliseconds{row.milliseconds}};
  CHECK(json_of(time) == row.json);
  CHECK(timestamp_from(row.json) == time);
}

TEST_CASE("a timestamp is read with any time zone, and nothing else is one") {
  CHECK(timestamp_from("2026-01-31T01:00:00+01:00") == timestamp_from("2026-01-31T00:00:00.000Z"));
  CHECK_FALSE(timestamp_from(nullptr).has_value());
  CHECK_THROWS_AS(timestamp_from("yesterday"), std::invalid_argument);
  CHECK_THROWS_AS(timestamp_from("2026-01-31T00:00:00"), std::invalid_argument);
  CHECK_THROWS_AS(timestamp_from(1.5), std::invalid_argument);
  CHECK_THROWS_AS(timestamp_from(std::numeric_limits<std::uint64_t>::max()), std::invalid_argument);
}
