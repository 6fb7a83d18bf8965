#include "ops/catching_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pawl::ops {
namespace {

std::optional<std::int64_t> seconds_until_gone(std::int64_t before, std::int64_t now,
                                               std::chrono::milliseconds elapsed) {
  if (now == 0)
    return 0;
  if (now >= before || elapsed.count() <= 0)
    return std::nullopt;
  const auto each_second =
      static_cast<double>(before - now) * 1000 / static_cast<double>(elapsed.count());
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(now) / each_second));
}

/// It has no lag, or processes messages. One that had none before had nothing to process.
bool moves(const Place& before, const Place& now) {
  return now.lag == 0 || (!now.stands && (before.lag == 0 || before.next != now.next));
}

}  // namespace

std::optional<std::int64_t> seconds_to_catch_up(const Place& before, const Place& now,
                                                std::chrono::milliseconds elapsed) {
  if (!before.lag || !now.lag || !moves(before, now))
    return std::nullopt;
  return seconds_until_gone(*before.lag, *now.lag, elapsed);
}

std::optional<std::int64_t> seconds_to_catch_up(const Places& before, const Places& now,
                                                std::chrono::milliseconds elapsed) {
  if (now.empty())
    return std::nullopt;
  std::int64_t lag_before = 0;
  std::int64_t lag_now = 0;
  std::int64_t last = 0;
  for (const auto& [partition, place] : now) {
    const auto earlier = before.find(partition);
    if (earlier == before.end() || !earlier->second.lag || !place.lag ||
        !moves(earlier->second, place))
      return std::nullopt;
    lag_before += *earlier->second.lag;
    lag_now += *place.lag;
    // One that moves and does not shrink is at the end of its log, or not: the sum tells.
    last =
        std::max(last, seconds_until_gone(*earlier->second.lag, *place.lag, elapsed).value_or(0));
  }
  const auto together = seconds_until_gone(lag_before, lag_now, elapsed);
  return together ? std::optional(std::max(*together, last)) : std::nullopt;
}

std::string span_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < 2 * kMinute)
    return fmt::format("{} s", std::max<std::int64_t>(0, seconds));
  if (seconds < kHour)
    return fmt::format("{} min", seconds / kMinute);
  if (seconds < kDay)
    return fmt::format("{} h {} min", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{} d {} h", seconds / kDay, seconds % kDay / kHour);
}

}  // namespace pawl::ops
