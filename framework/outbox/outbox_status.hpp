#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "console/json.hpp"
#include "outbox/store/view.hpp"

namespace pawl::cli {

/// For machines: totals, and every lane.
[[nodiscard]] Json outbox_json(const ledger::OutboxStatus& status);

/// "12 messages wait, the oldest for 3.2 s; 1 failed"; reports also if a message waits for too
/// long, and if messages wait and no process publishes.
[[nodiscard]] std::string outbox_text(const ledger::OutboxStatus& status);

/// "12", or "more than 100,000".
[[nodiscard]] std::string outbox_count(std::int64_t waiting, bool more);

/// "3.2 s", or "-".
[[nodiscard]] std::string outbox_age(const std::optional<ledger::Instant>& since,
                                     ledger::Instant now);

}  // namespace pawl::cli
