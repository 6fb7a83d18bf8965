#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "pawl/errors.hpp"

namespace pawl::message {

/// The message at hand does not hold what the configuration asks of it. Trying again gives the
/// same, so the failure policy applies at once. what() never quotes the message's bytes; topic,
/// partition and offset are added by the caller.
class MessageError : public PermanentError {
 public:
  using PermanentError::PermanentError;
};

/// The message's value was asked for a JSON field, and it is not JSON.
class JsonError : public MessageError {
 public:
  JsonError(const std::string& what, std::optional<std::size_t> byte)
      : MessageError(what), byte_(byte) {}

  /// Where in the value, counted in bytes from 0; nullopt where it cannot be told.
  [[nodiscard]] std::optional<std::size_t> byte() const { return byte_; }

 private:
  std::optional<std::size_t> byte_;
};

/// A placeholder cannot be filled from this message: nothing is there, or PostgreSQL cannot hold
/// it.
class RenderError : public MessageError {
 public:
  RenderError(std::string source, const std::string& what)
      : MessageError(what), source_(std::move(source)) {}

  /// The placeholder's text without its braces, e.g. "header:event-id".
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  std::string source_;
};

/// The record has headers that Kafka's client cannot read: which handler's message it is, and
/// under which key, is unknown.
class HeadersUnreadable : public MessageError {
 public:
  HeadersUnreadable()
      : MessageError(
            "the record has headers that Kafka's client cannot read (librdkafka reads up to "
            "100,000 per record), so no handler processed it") {}
};

}  // namespace pawl::message
