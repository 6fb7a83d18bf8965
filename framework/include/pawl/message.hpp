#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pawl {

/// A time as Kafka's records carry it, UTC.
using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

/// One Kafka header. A header's value may be null, which is not the same as empty.
struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

/// The parts of a record, as the Kafka room hands them over; see Message.
struct MessageFields {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::span<const Header> headers;
  std::optional<Timestamp> timestamp;
  std::string_view topic_id;
  /// The record has headers that Kafka's client cannot read; `headers` is empty, and says nothing.
  bool headers_unreadable = false;
};

/// A non-owning view of one Kafka record. Valid only while the handler that received it runs;
/// copy what must live longer. Cheap to copy, safe to read from any thread meanwhile.
class Message {
 public:
  explicit Message(const MessageFields& fields) : fields_(fields) {}

  [[nodiscard]] std::string_view topic() const { return fields_.topic; }
  [[nodiscard]] std::int32_t partition() const { return fields_.partition; }
  [[nodiscard]] std::int64_t offset() const { return fields_.offset; }

  /// The record key's bytes; nullopt is a null key.
  [[nodiscard]] std::optional<std::string_view> key() const { return fields_.key; }

  /// False for a tombstone (null value); value() is empty then.
  [[nodiscard]] bool has_value() const { return fields_.value.has_value(); }
  [[nodiscard]] std::string_view value() const {
    return fields_.value.value_or(std::string_view{});
  }

  /// Whether the record has headers that Kafka's client cannot read, for example more than
  /// 100,000. Such a record is undecodable: no condition, key function or handler gets it.
  [[nodiscard]] bool headers_unreadable() const { return fields_.headers_unreadable; }

  /// All headers in the producer's order; names may repeat.
  [[nodiscard]] std::span<const Header> headers() const { return fields_.headers; }

  /// The value of the LAST header of that name (Kafka's convention, KIP-82); nullopt when there is
  /// none or when its value is null: ask has_header() to tell these apart.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const {
    for (auto it = fields_.headers.rbegin(); it != fields_.headers.rend(); ++it) {
      if (it->name == name)
        return it->value;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool has_header(std::string_view name) const {
    for (const auto& header : fields_.headers) {
      if (header.name == name)
        return true;
    }
    return false;
  }

  /// When the record was created or appended, as the topic is configured
  /// (message.timestamp.type); nullopt: it carries no time.
  [[nodiscard]] std::optional<Timestamp> timestamp() const { return fields_.timestamp; }

  /// The topic's id (KIP-516) in Kafka's base64 form; empty where the broker has none.
  [[nodiscard]] std::string_view topic_id() const { return fields_.topic_id; }

 private:
  MessageFields fields_;
};

}  // namespace pawl
