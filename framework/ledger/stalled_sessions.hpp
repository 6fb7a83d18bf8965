#pragma once

#include <chrono>
#include <cstdint>

#include "postgres/session.hpp"

namespace pawl::ledger {

/// Ends `suspect`'s session if it blocks the server process `blocked` and its own process has left
/// it idle in a transaction for longer than `bound`. Returns whether it did. Throws
/// postgres::Error.
[[nodiscard]] bool end_stalled_session(postgres::Session& session, const postgres::Backend& suspect,
                                       std::int32_t blocked, std::chrono::milliseconds bound);

}  // namespace pawl::ledger
