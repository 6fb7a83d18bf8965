#pragma once

#include <string_view>

namespace pawl::postgres {

/// What a SQLSTATE says about who is to blame; decides what the engine does next
/// (PostgreSQL manual, Appendix A; docs/architecture/failures.md).
enum class FailureClass {
  kConnection,  ///< server gone, starting or stopping: wait and try again, never counted
  kReadOnly,  ///< nothing can be written: by the server (as kConnection) or the handler's own doing
  kResource,  ///< out of memory, disk, connections: wait and try again, never counted
  kContention,  ///< serialization, deadlock, lock timeout: try again at once, never counted
  kProgram,     ///< missing table, grant or function: every message would fail alike
  kMessage,     ///< this message's data: counted, then the failure policy
  kFenced,      ///< another owner holds the partition
  kOutOfOrder,  ///< the stored offset or a scope is not what was read: refused; both are read again
  kSessionChanged,    ///< its settings are not those that it began with: put back, and run again
  kTransactionEnded,  ///< the handler ended the transaction itself
  kRowMissing,        ///< the register row is gone
};

/// SQLSTATEs of pawl's own: raised by its functions (migrations/*.sql), some also
/// by the engine. No code looks for the others: PW007 refuses to remove an owned register row,
/// PW008 ends a pipelined message that is a duplicate or must wait (processed alone then), PW009 a
/// statement that touched other than expect_rows, PW010 a command beside which keys were removed,
/// PW012 an outbox that may not be published as it is, PW013 a handler whose statement returned
/// other rows than a response has, PW016 a lease that an operator cannot resolve.
inline constexpr std::string_view kFencedState = "PW001";
inline constexpr std::string_view kOutOfOrderState = "PW002";
/// A scope does not have the number that we remember.
inline constexpr std::string_view kScopeMovedState = "PW017";
/// A setting of the session is not what it was when the session began.
inline constexpr std::string_view kSessionChangedState = "PW018";
/// The transaction runs in another database than the one in which the process began.
inline constexpr std::string_view kWrongDatabaseState = "PW019";
inline constexpr std::string_view kTransactionEndedState = "PW003";
inline constexpr std::string_view kRowMissingState = "PW004";
/// PostgreSQL's own, of a prepared statement that does not exist: something has deallocated it.
inline constexpr std::string_view kNoStatementState = "26000";
/// A dead letter that is none any more.
inline constexpr std::string_view kResolvedState = "PW005";
/// An earlier dead letter of the same record key is unresolved.
inline constexpr std::string_view kParkedBehindState = "PW006";
/// A key that was claimed before is gone when it is looked at: the next try claims it.
inline constexpr std::string_view kKeyVanishedState = "PW011";
/// A response is larger than idempotency.max_response: it would be at the next attempt, too.
inline constexpr std::string_view kResponseTooLargeState = "PW014";

/// Where an error was met; its code alone says too little.
struct Circumstances {
  /// The session did not outlive it. A session that answers afterwards was not lost, whatever the
  /// code says: dblink, postgres_fdw and RAISE speak of connections of their own.
  bool session_died = false;
  /// A statement of pawl's own failed, not one of the handler's: of the message's data only values
  /// could be wrong, and when it runs into a limit of time it waited for a lock.
  bool own_statement = false;
  /// What is violated is a constraint of a table of pawl's, whoever's the statement is.
  bool own_constraint = false;
};
/// The lease under which a call was made is another's.
inline constexpr std::string_view kLeaseLostState = "PW015";

/// Classifies a five-character SQLSTATE.
[[nodiscard]] FailureClass classify(std::string_view sqlstate, Circumstances met = {});

/// Of a session that died: whether the server ended it by its own decision (shutdown, crash of
/// another process, failover) and said so. What it ends because of the session itself (idle in
/// transaction) is not that.
[[nodiscard]] bool is_goodbye(std::string_view sqlstate);

[[nodiscard]] std::string_view to_string(FailureClass failure);

}  // namespace pawl::postgres
