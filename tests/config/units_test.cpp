#include "config/units.hpp"

#include "prelude.hpp"

using namespace pawl::config;

TEST_CASE("a duration is a whole number and a unit") {
  CHECK(parse_duration("500ms") == 500ms);
  CHECK(parse_duration("30s") == 30s);
  CHECK(parse_duration("5m") == 5min);
  CHECK(parse_duration("2h") == 2h);
  CHECK(parse_duration("7d") == 168h);
  CHECK(parse_duration("0s") == 0ms);
}

TEST_CASE("what is not exactly a duration is none") {
  const auto* text = GENERATE("", "5", "s", "5 s", " 5s", "5s ", "-5s", "+5s", "1.5s", "5S", "5sec",
                              "1m30s", "99999999999999999999s", "9223372036854775807h", "0x5s");
  CAPTURE(text);
  CHECK(parse_duration(text) == std::nullopt);
}

TEST_CASE("a duration is printed in the largest unit that leaves a whole number") {
  CHECK(format_duration(0ms) == "0s");
  CHECK(format_duration(1500ms) == "1500ms");
  CHECK(format_duration(45s) == "45s");
  CHECK(format_duration(90s) == "90s");
  CHECK(format_duration(120s) == "2m");
  CHECK(format_duration(24h) == "24h");
  CHECK(format_duration(25h) == "25h");
  CHECK(format_duration(168h) == "7d");
}

TEST_CASE("a size is a whole number and a binary unit") {
  CHECK(parse_size("512B") == 512U);
  CHECK(parse_size("64KiB") == 65536U);
  CHECK(parse_size("1MiB") == 1048576U);
  CHECK(parse_size("2GiB") == 2147483648U);
  CHECK(format_size(1048576) == "1MiB");
  CHECK(format_size(1025) == "1025B");
  CHECK(format_size(0) == "0B");
}

TEST_CASE("what is not exactly a size is none") {
  const auto* text = GENERATE("", "64", "64KB", "64kib", "1MB", "1 MiB", "-1MiB", "1.5MiB",
                              "9223372036854775807GiB");
  CAPTURE(text);
  CHECK(parse_size(text) == std::nullopt);
}
