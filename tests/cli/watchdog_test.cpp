#include "cli/service.hpp"
#include "prelude.hpp"

using pawl::cli::watchdog_times;
using namespace std::chrono_literals;

TEST_CASE(
    "a watchdog is told often enough, and not of loops that are silent for as long as it waits") {
  for (const auto watchdog : {40ms, 1000ms, 30000ms, 60000ms, 3600000ms}) {
    CAPTURE(watchdog.count());
    const auto times = watchdog_times(watchdog);
    CHECK(times.interval * 2 <= watchdog);
    CHECK(times.interval <= 5s);
    CHECK(times.patience >= watchdog / 2);
    CHECK(times.patience + times.interval < watchdog);
  }
}
