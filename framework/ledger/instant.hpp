#pragma once

#include <chrono>
#include <string>

namespace pawl::ledger {

/// Milliseconds since 1970, UTC, of the database's clock unless said otherwise.
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

/// "2026-01-31T00:00:00Z"
[[nodiscard]] std::string to_string(Instant time);

}  // namespace pawl::ledger
