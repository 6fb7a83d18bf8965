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

/// One attempt of an external call, under the lease of the message's idempotency key
/// (docs/external-calls.md). While the lease is held, no other process calls for this key.
///
///   pawl::Response charge(pawl::Lease& lease, const pawl::Message& message) {
///     const auto reply = post("/charges", message.value(), {{"Idempotency-Key", lease.key()}});
///     if (reply.status == 429)
///       throw pawl::NotDone("rate limit", reply.retry_after);
///     return reply.body;
///   }
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

  /// The key by which the remote service detects duplicates: 64 hexadecimal digits, the SHA-256 of
  /// the name of the scope and the idempotency key. Every attempt and every process uses the same.
  [[nodiscard]] const std::string& key() const { return fields_.key; }
  /// The number of this attempt, from 1, among the recorded ones.
  [[nodiscard]] std::uint32_t attempt() const { return fields_.attempt; }
  /// An earlier attempt may have succeeded: its process crashed, lost its lease, or did not receive
  /// the response.
  [[nodiscard]] bool earlier_attempt_unknown() const { return fields_.earlier_attempt_unknown; }
  /// Time since the start of the previous attempt, by the clock of the database. Nullopt: there was
  /// none, or the time is unknown. A request can still be in progress at the remote service, so a
  /// missing result proves nothing shortly after the attempt.
  [[nodiscard]] std::optional<std::chrono::milliseconds> last_attempt_ago() const {
    return fields_.last_attempt_ago;
  }
  /// The end of the handler's `timeout`. The stop token is set then at the latest.
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return fields_.deadline; }
  /// Set when the call should stop: its deadline has passed, its lease is lost, or the shutdown of
  /// the process cannot wait longer. pawl still records the result of a call that returns later, if
  /// possible.
  [[nodiscard]] const std::stop_token& stop_token() const { return fields_.stop_token; }

 private:
  Fields fields_;
};

/// A call throws it if the call certainly had no effect: pawl retries it like any failure.
/// PermanentError means the same, and that retries cannot help. After any other exception, the
/// outcome is unknown.
class NotDone : public std::runtime_error {
 public:
  /// `retry_after`: the earliest retry, at most 1 hour.
  explicit NotDone(const std::string& what, std::chrono::milliseconds retry_after = {})
      : std::runtime_error(what), retry_after_(retry_after) {}
  [[nodiscard]] std::chrono::milliseconds retry_after() const { return retry_after_; }

 private:
  std::chrono::milliseconds retry_after_;
};

/// The outcome of an earlier attempt, as the remote service reports it.
class Found {
 public:
  enum class How { kDone, kNotDone, kUnknown };

  /// The call succeeded. pawl records `response` as if the call had returned it.
  static Found done(Response response = std::nullopt) { return {How::kDone, std::move(response)}; }
  /// The call had no effect and will have none. pawl calls again.
  static Found not_done() { return {How::kNotDone, std::nullopt}; }
  /// The remote service cannot tell (yet). This is a failed attempt, which pawl retries like any
  /// other.
  static Found unknown() { return {How::kUnknown, std::nullopt}; }

  [[nodiscard]] How how() const { return how_; }
  [[nodiscard]] const Response& response() const { return response_; }

 private:
  Found(How how, Response response) : how_(how), response_(std::move(response)) {}

  How how_;
  Response response_;
};

}  // namespace pawl
