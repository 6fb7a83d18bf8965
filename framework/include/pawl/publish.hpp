#pragma once

#include <optional>
#include <pqxx/dbtransaction>
#include <string_view>
#include <vector>

#include "pawl/message.hpp"
#include "pawl/statements.hpp"

namespace pawl {

/// A message for a Kafka topic, with views that are read during the call only. Absent key and value
/// are Kafka's null.
struct Outgoing {
  std::string_view topic;
  std::optional<std::string_view> key = {};
  std::optional<std::string_view> value = {};
  std::vector<Header> headers = {};
  /// What the record's header pawl-outbox-id says; empty: it is made (docs/outbox.md).
  std::string_view event_id = {};
};

/// Publishes a message once this transaction has committed (docs/outbox.md). In a handler it costs
/// no round trip: it travels as pawl::defer does, and what pawl.publish refuses fails the message.
/// In any other transaction it runs at once, and throws pqxx::sql_error. `schema`: of pawl's
/// tables.
void publish(pqxx::dbtransaction& tx, const Outgoing& message, std::string_view schema = "pawl");

/// The same as one more of a message's statements.
void publish(Statements& statements, const Outgoing& message, std::string_view schema = "pawl");

}  // namespace pawl
