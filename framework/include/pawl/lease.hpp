#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include "pawl/response.hpp"

namespace pawl {

/// One attempt of a call to the outside, under the lease of the message's idempotency key
/// (docs/external-calls.md). No other process calls for this key as long as the lease is held.
class Lease {
 public:
  struct Fields {
    std::string key = {};
    std::uint32_t attempt = 1;
    bool earlier_attempt_unknown = false;
    std::optional<std::chrono::milliseconds> last_attempt_ago = {};
    std::chrono::steady_clock::time_point deadline = {};
    std::stop_token stop_token = {};
  };
  explicit Lease(Fields fields) : fields_(std::move(fields)) {}

  /// For the other side to recognise a repetition by: 64 hexadecimal digits, the SHA-256 of the
  /// scope's name and the idempotency key. The same for every attempt and every process.
  [[nodiscard]] const std::string& key() const { return fields_.key; }
  /// From 1 on; of those that are known.
  [[nodiscard]] std::uint32_t attempt() const { return fields_.attempt; }
  /// An earlier one may have done it: its process died, lost its lease, or did not learn how it
  /// ended.
  [[nodiscard]] bool earlier_attempt_unknown() const { return fields_.earlier_attempt_unknown; }
  /// So long ago, by the server's clock, began the last attempt before this one. Nullopt: there was
  /// none, or it is not known. For as long as a request may be under way on the other side, that
  /// this does not find it there says nothing.
  [[nodiscard]] std::optional<std::chrono::milliseconds> last_attempt_ago() const {
    return fields_.last_attempt_ago;
  }
  /// When the handler's `timeout` is over; the stop token is set then at the latest.
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return fields_.deadline; }
  /// Set when the call should end: its deadline has come, its lease is lost, or the process shuts
  /// down and can wait no longer. A call that returns all the same is recorded, if it can be.
  [[nodiscard]] const std::stop_token& stop_token() const { return fields_.stop_token; }

 private:
  Fields fields_;
};

/// Thrown by a call that has certainly done nothing: it is tried again as any failure is, and is
/// not unknown. PermanentError says so too, and that no attempt can help. Any other exception
/// leaves it unknown whether it did anything.
class NotDone : public std::runtime_error {
 public:
  /// `retry_after`: not before that it is worth trying again, up to an hour.
  explicit NotDone(const std::string& what, std::chrono::milliseconds retry_after = {})
      : std::runtime_error(what), retry_after_(retry_after) {}
  [[nodiscard]] std::chrono::milliseconds retry_after() const { return retry_after_; }

 private:
  std::chrono::milliseconds retry_after_;
};

/// What the other side says of an earlier attempt that is unknown.
class Found {
 public:
  enum class How { kDone, kNotDone, kUnknown };

  /// It has done it; `response` is recorded as if the call had returned it.
  static Found done(Response response = std::nullopt) { return {How::kDone, std::move(response)}; }
  /// It has not, and will not: the call follows.
  static Found not_done() { return {How::kNotDone, std::nullopt}; }
  /// It cannot say (yet): a failure of the message, which is tried again as any is.
  static Found unknown() { return {How::kUnknown, std::nullopt}; }

  [[nodiscard]] How how() const { return how_; }
  [[nodiscard]] const Response& response() const { return response_; }

 private:
  Found(How how, Response response) : how_(how), response_(std::move(response)) {}

  How how_;
  Response response_;
};

}  // namespace pawl
