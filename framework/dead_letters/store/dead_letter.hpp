#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/payload.hpp"
#include "pawl/message.hpp"
#include "pawl/topic_partition.hpp"
#include "text/located.hpp"

namespace pawl::ledger {

/// One row of pawl.dead_letters. Times are UTC in RFC 3339.
struct DeadLetter {
  std::int64_t id = 0;
  TopicPartition partition;
  std::int64_t offset = -1;
  std::string topic_id;
  std::optional<std::int32_t> leader_epoch;
  std::optional<Timestamp> timestamp;
  std::string status;  ///< as stored: dead, parked, replayed, discarded
  std::string reason;  ///< dead_reason
  std::string handler;
  std::optional<std::string> idempotency_key;
  std::string sqlstate;
  std::string statement;  ///< of the handler: "sql[0]"; empty: it was none, or is unknown
  std::string error;
  std::string error_detail;  ///< may quote row values
  std::int64_t attempts = 0;
  std::string payload;                      ///< complete, truncated, omitted, erased
  std::optional<std::int64_t> value_bytes;  ///< of the message; nullopt: a tombstone
  std::string died_at;
  std::int64_t replays = 0;
  std::string
      due_at;  ///< when it is tried again by itself; "turn": once those before it are resolved
  std::int64_t retries = 0;  ///< by itself
  std::string resolved_at;
  std::string resolved_by;
  std::string resolution;
  std::optional<std::string> record_key;  ///< nullopt: the message has none, or it is not stored
  std::optional<std::string> record_key_hash;  ///< SHA-256; also where the key is not stored
  std::string traceparent;                     ///< of its headers; empty: none, or it is not stored
  bool headers_unknown = false;  ///< Kafka's client could not read them; `headers` says nothing
  // Only where the payload was asked for:
  std::optional<std::string> message_digest;  ///< of message::message_digest(); nullopt: unknown
  std::optional<std::string> record_value;
  std::vector<StoredHeader> headers;

  /// As people are shown it: "sql[0]: no such account".
  [[nodiscard]] std::string located_error() const { return texts::located(statement, error); }
  [[nodiscard]] bool unresolved() const { return status == "dead" || status == "parked"; }
  /// As people are shown it: "scheduled" if it is dead and retried automatically.
  [[nodiscard]] std::string shown_status() const {
    return status == "dead" && !due_at.empty() ? "scheduled" : status;
  }
};

/// From the column `headers` where it is not NULL.
void take_headers(DeadLetter& letter, std::string_view stored);

}  // namespace pawl::ledger
