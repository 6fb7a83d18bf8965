#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pawl {

/// The timestamp of a Kafka record, in UTC.
using Timestamp = std::chrono::sys_time<std::chrono::milliseconds>;

/// A Kafka header. Its value can be null, which differs from empty.
struct Header {
  std::string_view name;
  std::optional<std::string_view> value;
};

/// The parts of a record, from which a Message is constructed.
struct MessageFields {
  std::string_view topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::span<const Header> headers;
  std::optional<Timestamp> timestamp;
  std::string_view topic_id;
  /// Kafka's client cannot read the headers of the record. `headers` is then empty.
  bool headers_unreadable = false;
};

/// A non-owning view of a Kafka record. Valid only while the handler that received it runs, so copy
/// data that must live longer. Cheap to copy. During that time, any thread may read it.
///
///   if (const auto id = message.header("event-id"))
///     insert(*id, message.value());
class Message {
 public:
  explicit Message(const MessageFields& fields) : fields_(fields) {}

  [[nodiscard]] std::string_view topic() const { return fields_.topic; }
  [[nodiscard]] std::int32_t partition() const { return fields_.partition; }
  [[nodiscard]] std::int64_t offset() const { return fields_.offset; }

  /// The bytes of the record key. Nullopt: a null key.
  [[nodiscard]] std::optional<std::string_view> key() const { return fields_.key; }

  /// False for a tombstone, whose value is null. value() is then empty.
  [[nodiscard]] bool has_value() const { return fields_.value.has_value(); }
  [[nodiscard]] std::string_view value() const {
    return fields_.value.value_or(std::string_view{});
  }

  /// Whether Kafka's client cannot read the headers of the record, for example because there are
  /// more than 100,000. Such a record is undecodable: no condition, key function, or handler
  /// receives it.
  [[nodiscard]] bool headers_unreadable() const { return fields_.headers_unreadable; }

  /// All headers in the order of the producer. Names can repeat.
  [[nodiscard]] std::span<const Header> headers() const { return fields_.headers; }

  /// The value of the last header with this name (Kafka's convention, KIP-82). Nullopt: there is no
  /// such header, or its value is null. has_header() distinguishes the two.
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

  /// When the record was created or appended, as the topic's message.timestamp.type specifies.
  /// Nullopt: the record has no timestamp.
  [[nodiscard]] std::optional<Timestamp> timestamp() const { return fields_.timestamp; }

  /// The topic ID (KIP-516) in Kafka's base64 form. Empty: the broker provides none.
  [[nodiscard]] std::string_view topic_id() const { return fields_.topic_id; }

 private:
  MessageFields fields_;
};

}  // namespace pawl
