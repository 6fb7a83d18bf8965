#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "postgres/session.hpp"

namespace pawl::ledger {

/// Ends `suspect`'s session if it blocks the server process `blocked` and its own process has left
/// it idle in a transaction for longer than `bound`. Returns whether it did. Throws
/// postgres::Error.
[[nodiscard]] bool end_stalled_session(postgres::Session& session, const postgres::Backend& suspect,
                                       std::int32_t blocked, std::chrono::milliseconds bound);

/// The same of a session that belongs to the hands of process `owner`, whichever it is that blocks.
[[nodiscard]] bool end_stalled_hand(postgres::Session& session, const std::string& owner,
                                    std::int32_t blocked, std::chrono::milliseconds bound);

/// The session belongs to the hands of process `owner`, which its name in the register ends with: a
/// lock that is held as long as the session lives, and that nobody waits for. Not through a pooler.
void tell_whose_hand(postgres::Session& session, const std::string& owner);

}  // namespace pawl::ledger
