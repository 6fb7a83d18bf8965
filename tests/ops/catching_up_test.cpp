#include "ops/catching_up.hpp"

#include "prelude.hpp"

using namespace pawl::ops;

namespace {

/// Of a partition that went on to `next`, and lags by `lag`.
Place at(std::optional<std::int64_t> next, std::optional<std::int64_t> lag, bool stands = false) {
  return {next, lag, stands};
}

Places places(const std::vector<Place>& each) {
  Places all;
  for (const auto& place : each)
    all[{"payments", static_cast<std::int32_t>(all.size())}] = place;
  return all;
}

}  // namespace

TEST_CASE("the time to catch up is known while the lag shrinks") {
  struct Row {
    Place before;
    Place now;
    std::chrono::milliseconds elapsed;
    std::optional<std::int64_t> seconds;
  };
  const auto unknown = std::nullopt;
  for (const auto& row :
       {Row{at(0, 1000), at(100, 900), 1s, 9}, Row{at(0, 1000), at(1, 999), 1s, 999},
        Row{at(0, 10), at(7, 3), 2s, 1}, Row{at(0, 10), at(10, 0), 1s, 0},
        Row{at(0, 0), at(0, 0), 0s, 0}, Row{at(0, 10), at(5, 10), 1s, unknown},
        Row{at(0, 10), at(5, 11), 1s, unknown}, Row{at(0, 10), at(1, 9), 0s, unknown},
        Row{at(0, unknown), at(1, 9), 1s, unknown}, Row{at(0, 10), at(1, unknown), 1s, unknown},
        // It was halted on its way.
        Row{at(0, 10), at(5, 5, true), 1s, unknown},
        // Retention removed what it waits in front of.
        Row{at(5, 10), at(5, 8), 1s, unknown}, Row{at(0, 10), at(10, 0, true), 1s, 0}}) {
    INFO(row.now.next.value_or(-1) << " " << row.now.lag.value_or(-1) << " " << row.now.stands);
    CHECK(seconds_to_catch_up(row.before, row.now, row.elapsed) == row.seconds);
  }
}

TEST_CASE("the time until all have caught up is known only while each that lags moves") {
  struct Row {
    const char* name;
    std::vector<Place> before;
    std::vector<Place> now;
    std::optional<std::int64_t> seconds;
  };
  const auto unknown = std::nullopt;
  for (const auto& row :
       {Row{"both move", {at(0, 300), at(0, 300)}, {at(100, 200), at(100, 200)}, 20},
        Row{"the slowest ends it", {at(0, 1000), at(0, 100)}, {at(900, 100), at(1, 99)}, 990},
        Row{"one stands in front of a poison message",
            {at(3, 6), at(0, 300)},
            {at(3, 6), at(100, 200)},
            unknown},
        Row{"one was halted on its way",
            {at(0, 300), at(0, 300)},
            {at(100, 200, true), at(100, 200)},
            unknown},
        Row{"one is halted, and new messages wait in front of it",
            {at(3, 0), at(0, 300)},
            {at(3, 2, true), at(100, 200)},
            unknown},
        Row{"what stands has no lag", {at(3, 0), at(0, 300)}, {at(3, 0, true), at(100, 200)}, 20},
        Row{"new messages have just come to one that had none",
            {at(3, 0), at(0, 300)},
            {at(3, 1), at(100, 200)},
            21},
        Row{"one moves, and gets as much as it processes",
            {at(3, 5), at(0, 300)},
            {at(13, 5), at(100, 200)},
            21},
        Row{"more comes than is processed",
            {at(3, 5), at(0, 300)},
            {at(13, 505), at(100, 200)},
            unknown},
        Row{"the lag of one is not known",
            {at(3, 5), at(0, 300)},
            {at(13, unknown), at(100, 200)},
            unknown},
        Row{"the lag of one was not known",
            {at(3, unknown), at(0, 300)},
            {at(13, 1), at(100, 200)},
            unknown},
        Row{"one has been added", {at(0, 300)}, {at(100, 200), at(0, 5)}, unknown},
        Row{"one is another process's now", {at(0, 300), at(3, 6)}, {at(100, 200)}, 20},
        Row{"all have caught up", {at(0, 300)}, {at(300, 0)}, 0},
        Row{"there is none", {at(0, 300)}, {}, unknown}}) {
    INFO(row.name);
    CHECK(seconds_to_catch_up(places(row.before), places(row.now), 10s) == row.seconds);
  }
}

TEST_CASE("a span of time is told in units that a person reads") {
  CHECK(span_text(45) == "45 s");
  CHECK(span_text(180) == "3 min");
  CHECK(span_text(2 * 3600 + 5 * 60) == "2 h 5 min");
  CHECK(span_text(4 * 86400 + 2 * 3600) == "4 d 2 h");
}
