#pragma once

#include <string>

namespace pawl::ops {

/// docs/reference/events.md: events with their levels, warnings, alerts, and fields.
[[nodiscard]] std::string events_page();

/// docs/reference/metrics.md.
[[nodiscard]] std::string metrics_page();

}  // namespace pawl::ops
