#pragma once

#include <chrono>
#include <cstdint>

#include "pawl/options.hpp"

namespace pawl::engine {

/// The longest wait after the `attempts`-th failed attempt of a message: retry_initial, doubled up
/// to retry_max. Of the attempts alone, so that a restart goes on where the process before was.
[[nodiscard]] std::chrono::milliseconds longest_wait(const FailureOptions& options,
                                                     std::uint32_t attempts);

/// The wait itself: uniform in the upper three quarters of that, so that a fleet does not come back
/// in step.
[[nodiscard]] std::chrono::milliseconds wait_before_retry(const FailureOptions& options,
                                                          std::uint32_t attempts);

/// Attempts of a message before its policy applies, at least 1: as many as have waits of retry_for
/// between them on average, and max_attempts at most where that is not 0.
[[nodiscard]] std::uint32_t attempts_allowed(const FailureOptions& options);

}  // namespace pawl::engine
