#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "message/json.hpp"
#include "message/timestamp.hpp"
#include "pawl/message.hpp"

namespace pawl::test {

/// Owns what a Message only looks at. Built in one expression:
/// `MessageBuilder{}.header("event-id", "e1").value(R"({"a":1})")`.
class MessageBuilder {
 public:
  MessageBuilder() = default;

  MessageBuilder& topic(std::string topic) {
    topic_ = std::move(topic);
    return *this;
  }
  MessageBuilder& topic_id(std::string id) {
    topic_id_ = std::move(id);
    return *this;
  }
  MessageBuilder& partition(std::int32_t partition) {
    partition_ = partition;
    return *this;
  }
  MessageBuilder& offset(std::int64_t offset) {
    offset_ = offset;
    return *this;
  }
  MessageBuilder& timestamp(std::int64_t ms) {
    timestamp_ms_ = ms;
    return *this;
  }
  MessageBuilder& key(std::optional<std::string> key) {
    key_ = std::move(key);
    return *this;
  }
  /// nullopt is a tombstone.
  MessageBuilder& value(std::optional<std::string> value) {
    value_ = std::move(value);
    return *this;
  }
  MessageBuilder& header(std::string name, std::optional<std::string> value) {
    headers_.emplace_back(std::move(name), std::move(value));
    return *this;
  }

  /// A view of the builder, which must outlive it and not change meanwhile.
  [[nodiscard]] Message message() const {
    views_.clear();
    for (const auto& [name, value] : headers_)
      views_.push_back(Header{name, view(value)});
    MessageFields fields;
    fields.topic = topic_;
    fields.partition = partition_;
    fields.offset = offset_;
    fields.key = view(key_);
    fields.value = view(value_);
    fields.headers = views_;
    fields.timestamp = pawl::message::timestamp_of(timestamp_ms_);
    fields.topic_id = topic_id_;
    return Message{fields};
  }

 private:
  static std::optional<std::string_view> view(const std::optional<std::string>& text) {
    return text ? std::optional<std::string_view>{*text} : std::nullopt;
  }

  std::string topic_ = "payments";
  std::string topic_id_ = "dG9waWMtaWQtb2YtcGF3bA";
  std::int32_t partition_ = 3;
  std::int64_t offset_ = 42;
  std::int64_t timestamp_ms_ = 1700000000123;
  std::optional<std::string> key_ = "record-key";
  std::optional<std::string> value_ = "{}";
  std::vector<std::pair<std::string, std::optional<std::string>>> headers_;
  mutable std::vector<Header> views_;
};

/// A message with this JSON (or other) value.
inline MessageBuilder valued(std::string value) {
  MessageBuilder builder;
  builder.value(std::move(value));
  return builder;
}

/// Calls `use(message, json)` with a reader of its own.
template <typename Use>
auto with(const MessageBuilder& builder, Use use) {
  const Message view = builder.message();
  message::JsonReader reader;
  message::JsonView json{reader, view};
  return use(view, json);
}

}  // namespace pawl::test
