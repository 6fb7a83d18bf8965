#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "console/json.hpp"
#include "outbox/store/view.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// For machines: totals, and every lane.
[[nodiscard]] Json outbox_json(const ledger::OutboxStatus& status);

/// "12 messages wait, the oldest for 3.2 s; 1 is set apart (`COMMAND`)"; says also where one
/// waits for too long, and where messages wait and no process publishes.
[[nodiscard]] std::string outbox_text(const ledger::OutboxStatus& status,
                                      const InvocationOptions& invocation);

/// "12", or "more than 100000".
[[nodiscard]] std::string outbox_count(std::int64_t waiting, bool more);

/// "3.2 s", or "-".
[[nodiscard]] std::string outbox_age(const std::optional<ledger::Instant>& since,
                                     ledger::Instant now);

}  // namespace pawl::cli
