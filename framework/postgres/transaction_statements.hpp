#pragma once

#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::postgres {

enum class Isolation { kReadCommitted, kRepeatableRead, kSerializable };

/// BEGIN, always with its isolation: the session's default is the application's to set.
[[nodiscard]] const Statement& begin_statement(Isolation isolation);
[[nodiscard]] const Statement& commit_statement();
/// COMMIT, and BEGIN of another transaction like it (PostgreSQL manual, COMMIT).
[[nodiscard]] const Statement& commit_and_chain_statement();

/// COMMIT of an aborted transaction succeeds, with another tag: whether this one has committed.
[[nodiscard]] bool has_committed(const PGresult* answer);

/// Ends the open transaction, if any, and releases the advisory locks of the session. A session
/// that cannot even do that is dead.
void roll_back(Session& session) noexcept;

}  // namespace pawl::postgres
