#pragma once

#include <spdlog/common.h>

#include <optional>
#include <string>

#include "pawl/observer.hpp"

namespace pawl::ops {

/// How a step is said in the log.
struct StepLine {
  spdlog::level::level_enum level = spdlog::level::debug;
  /// It may come many times in a row, and is held back then (RepeatLimiter).
  bool limited = false;
  std::string text = {};
};

/// Nullopt: the log says it in another way (counts, outages), or not at all.
[[nodiscard]] std::optional<StepLine> line_of(const Event& event);

}  // namespace pawl::ops
