#pragma once

#include <optional>
#include <pqxx/dbtransaction>
#include <string_view>
#include <vector>

#include "pawl/message.hpp"
#include "pawl/statements.hpp"

namespace pawl {

/// A message for a Kafka topic. pawl reads its views only during the call of publish(). A missing
/// key or value is Kafka's null.
struct Outgoing {
  std::string_view topic;
  std::optional<std::string_view> key = {};
  std::optional<std::string_view> value = {};
  std::vector<Header> headers = {};
  /// The value of the header pawl-outbox-id. Empty: pawl generates one (docs/outbox.md).
  std::string_view event_id = {};
};

/// Publishes a message to Kafka after this transaction commits (docs/outbox.md).
///
///   pawl::publish(tx, {.topic = "receipts", .key = account, .value = receipt});
///
/// In a handler, it costs no round trip, because pawl sends the statement like pawl::defer. A
/// message that pawl.publish rejects fails the message of the handler. In any other transaction,
/// the statement runs at once, and throws pqxx::sql_error. `schema`: the schema of pawl's tables.
void publish(pqxx::dbtransaction& tx, const Outgoing& message, std::string_view schema = "pawl");

/// The same, as a further statement of a statement handler.
void publish(Statements& statements, const Outgoing& message, std::string_view schema = "pawl");

}  // namespace pawl
