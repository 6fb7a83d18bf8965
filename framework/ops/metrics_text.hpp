#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/monitoring.hpp"

namespace pawl::ops {

/// One metric, as docs/reference/metrics.md lists it.
struct MetricRow {
  std::string_view name;
  std::string_view type;    ///< "counter", "gauge", "histogram"
  std::string_view labels;  ///< "topic, partition"
  std::string_view help;
};

/// All metrics. The only place that has their names and texts.
[[nodiscard]] std::span<const MetricRow> metric_table();

/// All metrics in Prometheus' text format. A metric without a known value has no line.
[[nodiscard]] std::string metrics_text(const MetricsObserver& metrics, const ProcessLook& look);

}  // namespace pawl::ops
