#include "ops/catching_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pawl::ops {

std::optional<std::int64_t> seconds_to_catch_up(std::int64_t before, std::int64_t now,
                                                std::chrono::milliseconds elapsed) {
  if (now == 0)
    return 0;
  if (now >= before || elapsed.count() <= 0)
    return std::nullopt;
  const auto each_second =
      static_cast<double>(before - now) * 1000 / static_cast<double>(elapsed.count());
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(now) / each_second));
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
