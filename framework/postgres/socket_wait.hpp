#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <chrono>
#include <optional>

namespace pawl::postgres {

enum class Waited { kReady, kLate, kUnwanted };

/// Waits until the connection's socket has one of `events` (of poll(2)). Nullopt as `until`: as
/// long as it takes. `unwanted`, where not null, is set by another thread and looked at every 50
/// ms. Throws Error when poll fails.
[[nodiscard]] Waited wait_for_socket(
    const PGconn* raw, short events,
    const std::optional<std::chrono::steady_clock::time_point>& until,
    const std::atomic<bool>* unwanted);

}  // namespace pawl::postgres
