#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace pawl::ops {

/// When a lag is gone that was `before` and is `now` after `elapsed`, if it goes on shrinking like
/// that; rounded up. 0: it is gone. Nullopt: it does not shrink, or no time has passed.
[[nodiscard]] std::optional<std::int64_t> seconds_to_catch_up(std::int64_t before, std::int64_t now,
                                                              std::chrono::milliseconds elapsed);

/// "45 s", "3 min", "2 h 5 min", "4 d 2 h"
[[nodiscard]] std::string span_text(std::int64_t seconds);

}  // namespace pawl::ops
