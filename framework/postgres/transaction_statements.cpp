#include "postgres/transaction_statements.hpp"

#include <cstring>
#include <exception>

#include "postgres/flight.hpp"

namespace pawl::postgres {

const Statement& begin_statement(Isolation isolation) {
  static const Statement read_committed{"pawl_begin", "BEGIN ISOLATION LEVEL READ COMMITTED"};
  static const Statement repeatable_read{"pawl_begin_rr", "BEGIN ISOLATION LEVEL REPEATABLE READ"};
  static const Statement serializable{"pawl_begin_s", "BEGIN ISOLATION LEVEL SERIALIZABLE"};
  switch (isolation) {
    case Isolation::kReadCommitted:
      return read_committed;
    case Isolation::kRepeatableRead:
      return repeatable_read;
    case Isolation::kSerializable:
      return serializable;
  }
  return read_committed;
}

const Statement& commit_statement() {
  static const Statement commit{"pawl_commit", "COMMIT"};
  return commit;
}

const Statement& commit_and_chain_statement() {
  static const Statement chain{"pawl_commit_chain", "COMMIT AND CHAIN"};
  return chain;
}

bool has_committed(const PGresult* answer) {
  // PQcmdStatus takes what it does not change as not const.
  return std::strcmp(PQcmdStatus(const_cast<PGresult*>(answer)), "COMMIT") == 0;
}

namespace {

void send_rollback(Session& session) {
  static const Statement rollback{"pawl_rollback", "ROLLBACK"};
  // Through a pooler it might reach another server process.
  auto release = session.pooled() ? std::nullopt : session.release_of_locks();
  if (!session.in_transaction() && !release)
    return;
  Flight flight(session);
  if (session.in_transaction())
    flight.add(rollback);
  if (release)
    flight.add(*release);
  flight.run();
  if (release)
    session.locks_released();
}

}  // namespace

void roll_back(Session& session) noexcept {
  try {
    if (!session.alive())
      return;
    const bool prepares = session.prepares();
    try {
      send_rollback(session);
    } catch (const Error&) {
      if (session.prepares() == prepares)
        throw;
      // A handler had deallocated it; now it is sent as a text.
      send_rollback(session);
    }
  } catch (const std::exception&) {
    // Without a ROLLBACK the session is of no use; the next call on it will say that it is dead.
    session.interrupt();
  }
}

}  // namespace pawl::postgres
