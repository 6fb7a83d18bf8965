#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postgres/session.hpp"

namespace pawl::ledger {

/// A session that holds a lock for which another one waits.
struct BlockingSession {
  std::int32_t pid = 0;  ///< 0: a prepared transaction
  std::string user;      ///< empty, as the rest: it has ended meanwhile, or is not shown
  std::string application;
  std::string state;              ///< "idle in transaction"
  std::string transaction_since;  ///< RFC 3339
  /// What the other one waits for, as still_block() knows it again; empty: unknown.
  std::string lock = {};

  friend bool operator==(const BlockingSession&, const BlockingSession&) = default;
};

/// "session 42 (user app, application "psql", idle in transaction, its transaction open since
/// 2026-01-31T00:00:00Z) holds the lock"; empty: there is none.
[[nodiscard]] std::string text_of(const std::vector<BlockingSession>& sessions);

/// Those that block the server process `blocked` now, at most three, the oldest transaction first.
/// Not through a pooler. Throws postgres::Error.
[[nodiscard]] std::vector<BlockingSession> blocking_sessions(postgres::Session& session,
                                                             std::int32_t blocked);

/// Whether one of these holds what was waited for, or awaits it. Throws postgres::Error.
[[nodiscard]] bool still_block(postgres::Session& session,
                               const std::vector<BlockingSession>& sessions);

}  // namespace pawl::ledger
