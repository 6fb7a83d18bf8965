#pragma once

#include <string>

#include "ops/monitoring.hpp"

namespace pawl::ops {

/// All metrics in Prometheus' text format. What is not known has no line.
[[nodiscard]] std::string metrics_text(const MetricsObserver& metrics, const ProcessLook& look);

}  // namespace pawl::ops
