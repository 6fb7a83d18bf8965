#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  /// The lock of this session that another one waits for, as still_block() compares it; empty:
  /// unknown.
  std::string lock = {};
  /// The SQL command of its current or last statement, such as "UPDATE". The statement itself may
  /// contain values of the application, which neither a log nor a table of pawl may contain.
  std::string command = {};

  friend bool operator==(const BlockingSession&, const BlockingSession&) = default;
};

/// "session 42 (user app, application "psql", idle in transaction, its transaction open since
/// 2026-01-31T00:00:00Z, last statement UPDATE) holds the lock"; empty: there is none.
[[nodiscard]] std::string text_of(const std::vector<BlockingSession>& sessions);

/// The roles that PostgreSQL allows to run termination_sql(), of a command that names one with -U.
/// The last sentence is without its period.
inline constexpr std::string_view kTerminationRoles =
    "If the session's role is a superuser, -U must name a superuser. Otherwise, it can name a "
    "member of that role or of pg_signal_backend";

/// "SELECT pg_terminate_backend(42)"
[[nodiscard]] std::string termination_sql(std::int32_t pid);

/// Sessions at the head of the queue that the server process `blocked` waits in now, at most three,
/// the oldest transaction first. Of sessions that wait for one row, all have the same head. Not
/// through a pooler. Throws postgres::Error.
[[nodiscard]] std::vector<BlockingSession> blocking_sessions(postgres::Session& session,
                                                             std::int32_t blocked);

/// Whether one of these still holds its lock, or waits for it. Throws postgres::Error.
[[nodiscard]] bool still_block(postgres::Session& session,
                               const std::vector<BlockingSession>& sessions);

}  // namespace pawl::ledger
