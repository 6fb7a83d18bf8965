#include "message/rfc3339.hpp"

#include "prelude.hpp"

using namespace pawl::message;

TEST_CASE("an instant is printed in UTC, to the second and to the millisecond") {
  struct Case {
    std::int64_t milliseconds;
    std::string seconds;
    std::string exact;
  };
  const auto instant =
      GENERATE(Case{0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"},
               Case{7, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.007Z"},
               Case{1769817600000, "2026-01-31T00:00:00Z", "2026-01-31T00:00:00.000Z"},
               Case{1769817600999, "2026-01-31T00:00:00Z", "2026-01-31T00:00:00.999Z"},
               Case{-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"},
               Case{253402300799999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999Z"});
  CAPTURE(instant.milliseconds);
  const pawl::Timestamp time{std::chrono::milliseconds{instant.milliseconds}};
  CHECK(rfc3339(time) == instant.seconds);
  CHECK(rfc3339_milliseconds(time) == instant.exact);
}
