#pragma once

#include <pqxx/dbtransaction>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Queues a statement whose result the handler does not need. pawl sends it together with the end
/// of the message's transaction, so it costs no round trip.
///
///   pawl::defer(tx, "INSERT INTO audit_log (entry) VALUES ($1)", pqxx::params{entry});
///
/// Deferred statements run in the order of the calls, after all statements that the handler
/// executed itself. A statement that fails fails the message, as if the handler had thrown.
///
/// `tx`: the transaction that pawl passed to the handler, not a subtransaction.
/// `sql`: one statement with $1, $2, ... pawl prepares it once per connection, so pass values as
/// `parameters`.
///
/// Throws std::invalid_argument for another transaction, and for a text parameter with a NUL byte,
/// which PostgreSQL's text cannot contain. Throws std::runtime_error for COPY, which halts the
/// partition like a wrong statement. Run COPY in the handler (pqxx::stream_to, tx.exec).
void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters);

}  // namespace pawl
