#pragma once

// Inserts a row without a round trip of its own, and then updates the balance of an account.
//
//   #include <pawl/defer.hpp>
//   #include <pawl/message.hpp>
//   #include <pqxx/pqxx>
//
//   void apply_payment(pqxx::dbtransaction& tx, const pawl::Message& message) {
//     pawl::defer(tx, "INSERT INTO payments (event_id, payment) VALUES ($1, $2::jsonb)",
//                 pqxx::params{message.header("event-id"), message.value()});
//     tx.exec("UPDATE accounts SET balance = balance + ($1::jsonb->>'amount')::bigint"
//             " WHERE id = $1::jsonb->>'account' RETURNING balance",
//             pqxx::params{message.value()})
//         .one_row();  // throws if the account does not exist: then nothing is stored
//   }

#include <pqxx/dbtransaction>
#include <pqxx/params>
#include <string_view>

namespace pawl {

/// Queues a statement that pawl sends together with the COMMIT of the message, so that it costs no
/// round trip. Use it for statements whose result the handler does not need.
///
/// Deferred statements run in the order of the calls, after all statements that the handler
/// executed itself. If one fails, the message fails, as if the handler had thrown.
///
/// `tx`: the transaction that the handler received, not a subtransaction of it.
///
/// `sql`: one statement with $1, $2, ... It is prepared once per connection, so pass values as
/// `parameters`, at most 65,535 (PostgreSQL, "PostgreSQL Limits"). It must not be COPY. Run COPY in
/// the handler, with pqxx::stream_to or tx.exec.
///
/// Throws std::invalid_argument for another transaction, and for a text parameter with a NUL byte,
/// which text in PostgreSQL cannot contain. Throws PermanentError for too many parameters. Throws
/// std::runtime_error for COPY; pawl then halts the partition, as after any program error.
void defer(pqxx::dbtransaction& tx, std::string_view sql, const pqxx::params& parameters);

}  // namespace pawl
