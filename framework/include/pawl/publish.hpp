#pragma once

// Stores a payment, and publishes a message if and only if the payment commits.
//
//   #include <pawl/message.hpp>
//   #include <pawl/publish.hpp>
//   #include <pqxx/pqxx>
//
//   void apply_payment(pqxx::dbtransaction& tx, const pawl::Message& message) {
//     tx.exec("INSERT INTO payments (payment) VALUES ($1::jsonb)", pqxx::params{message.value()});
//     pawl::publish(tx, {.topic = "payments-booked",
//                        .key = message.key(),
//                        .value = message.value()});
//   }

#include <optional>
#include <pqxx/dbtransaction>
#include <string_view>
#include <vector>

#include "pawl/message.hpp"
#include "pawl/statements.hpp"

namespace pawl {

/// A message for a Kafka topic. publish() reads the views during the call only. A key or value that
/// is absent is null in Kafka.
struct Outgoing {
  /// The name of a topic, 1 to 249 characters; not an internal topic of Kafka (`__...`).
  std::string_view topic;
  std::optional<std::string_view> key = {};
  /// With key and headers at most `outbox.max_message` bytes.
  std::optional<std::string_view> value = {};
  std::vector<Header> headers = {};
  /// The value of the record's header pawl-outbox-id, at most 1,000 bytes. Empty: pawl generates
  /// one (docs/outbox.md).
  std::string_view event_id = {};
};

/// Publishes a message to Kafka after this transaction has committed (docs/outbox.md). `schema` is
/// that of pawl's tables (`postgres.schema`).
///
/// In a handler, it queues the statement as defer() does, and costs no round trip. If the function
/// pawl.publish rejects the message, the handler's message fails. In any other transaction, the
/// statement runs at once, and throws pqxx::sql_error.
void publish(pqxx::dbtransaction& tx, const Outgoing& message, std::string_view schema = "pawl");

/// Adds the same statement to those of a message (StatementFunction).
void publish(Statements& statements, const Outgoing& message, std::string_view schema = "pawl");

}  // namespace pawl
