#pragma once

// A handler whose result is stored with the idempotency key of its message.
//
//   #include <pawl/message.hpp>
//   #include <pawl/response.hpp>
//   #include <pqxx/pqxx>
//
//   pawl::Response apply_payment(pqxx::dbtransaction& tx, const pawl::Message& message) {
//     return tx
//         .exec("INSERT INTO payments (payment) VALUES ($1::jsonb) RETURNING payment_id",
//               pqxx::params{message.value()})
//         .one_field()
//         .as<std::string>();
//   }

#include <optional>
#include <string>

namespace pawl {

/// The result of a handler: bytes that pawl stores with the idempotency key, or nothing
/// (docs/stored-responses.md). If it has more than `idempotency.max_response` bytes, the message
/// fails.
using Response = std::optional<std::string>;

}  // namespace pawl
