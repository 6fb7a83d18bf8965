#pragma once

// Derives an idempotency key: the header event-id, or the record's key if the header is missing.
//
//   #include <optional>
//   #include <pawl/message.hpp>
//   #include <string>
//
//   std::optional<std::string> event_id(const pawl::Message& message) {
//     auto id = message.header("event-id");
//     if (!id)
//       id = message.key();
//     return id ? std::optional<std::string>(*id) : std::nullopt;
//   }

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pawl {

/// The time of a record in Kafka: UTC, in milliseconds.
using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

/// One header of a record (KIP-82). Its value may be null, which is not the same as empty.
struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

/// The parts of a record. pawl fills them; tests of handlers may fill them, too. See Message.
struct MessageFields {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::span<const Header> headers;
  std::optional<Timestamp> timestamp;
  std::string_view topic_id;
  /// The record has headers that the Kafka client cannot read, so that `headers` is empty.
  bool headers_unreadable = false;
};

/// A view of one record in Kafka. It owns nothing, and is valid only until the function that
/// received it returns. Copy all bytes that must live longer. It is cheap to copy, and any thread
/// may read it.
class Message {
 public:
  explicit Message(const MessageFields& fields) : fields_(fields) {}

  [[nodiscard]] std::string_view topic() const { return fields_.topic; }
  /// The number of the partition, from 0.
  [[nodiscard]] std::int32_t partition() const { return fields_.partition; }
  /// The offset of this record, from 0.
  [[nodiscard]] std::int64_t offset() const { return fields_.offset; }

  /// The bytes of the record's key. Nullopt: the key is null.
  [[nodiscard]] std::optional<std::string_view> key() const { return fields_.key; }

  /// False for a tombstone: the value is null.
  [[nodiscard]] bool has_value() const { return fields_.value.has_value(); }
  /// The bytes of the value; empty for a tombstone.
  [[nodiscard]] std::string_view value() const {
    return fields_.value.value_or(std::string_view{});
  }

  /// Whether the record has headers that the Kafka client cannot read, for example more than
  /// 100,000. Such a record is undecodable: no condition, key function, or handler receives it.
  [[nodiscard]] bool headers_unreadable() const { return fields_.headers_unreadable; }

  /// All headers in the order of the producer. Names may repeat.
  [[nodiscard]] std::span<const Header> headers() const { return fields_.headers; }

  /// The value of the last header with this name, as in Kafka's own clients (KIP-82). Nullopt: the
  /// header is missing, or its value is null. has_header() distinguishes the two.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    for (auto it = fields_.headers.rbegin(); it != fields_.headers.rend(); ++it) {
      if (it->name == name)
        return it->value;
    }
    return std::nullopt;
  }
  /// Whether at least one header has this name.
  [[nodiscard]] bool has_header(std::string_view name) const {
    for (const auto& header : fields_.headers) {
      if (header.name == name)
        return true;
    }
    return false;
  }

  /// When the record was created or appended, as `message.timestamp.type` of the topic specifies
  /// (KIP-32). Nullopt: the record has no timestamp.
  [[nodiscard]] std::optional<Timestamp> timestamp() const { return fields_.timestamp; }

  /// The ID of the topic (KIP-516) in Kafka's base64 form. Empty: the broker has none.
  [[nodiscard]] std::string_view topic_id() const { return fields_.topic_id; }

 private:
  MessageFields fields_;
};

}  // namespace pawl
