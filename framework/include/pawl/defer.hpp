#pragma once

#include <pqxx/dbtransaction>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Queues a statement of a handler's that travels with the end of the message's transaction and so
/// costs no round trip: for statements whose result the handler does not look at. Deferred
/// statements run in the order of the calls, after everything that the handler executed itself. One
/// that fails fails the message, as if the handler had thrown. `sql` is one statement with $1, $2,
/// ...; it is prepared once per connection, so give values as parameters. `tx` is the transaction
/// that the handler was given, not a subtransaction of it: throws std::invalid_argument, also for
/// a text parameter with a NUL byte, which PostgreSQL's text cannot hold. COPY cannot be deferred:
/// that throws std::runtime_error, and halts the partition as a wrong statement does; run it in the
/// handler itself, with pqxx::stream_to or tx.exec.
void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters);

}  // namespace pawl
