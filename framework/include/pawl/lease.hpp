#pragma once

// The two functions of a LeasedHandler that charges a card.
//
//   #include <chrono>
//   #include <pawl/lease.hpp>
//   #include <pawl/message.hpp>
//
//   // Yours: a client of the remote service. Returns early if `stop` is set.
//   std::string charge_card(const std::string& key, std::string_view order, std::stop_token stop);
//   std::optional<std::string> find_charge(const std::string& key);
//
//   pawl::Response charge(pawl::Lease& lease, const pawl::Message& message) {
//     return charge_card(lease.key(), message.value(), lease.stop_token());
//   }
//
//   pawl::Found find(pawl::Lease& lease, const pawl::Message&) {
//     if (const auto charge = find_charge(lease.key()))
//       return pawl::Found::done(*charge);
//     // A request of a minute ago may still be in progress there.
//     const bool finished = lease.last_attempt_ago() > std::chrono::minutes(1);
//     return finished ? pawl::Found::not_done() : pawl::Found::unknown();
//   }

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
class Lease {
 public:
  /// The parts of a lease. pawl fills them; tests of handlers may fill them, too.
  struct Fields {
    std::string key = {};
    std::uint32_t attempt = 1;
    bool earlier_attempt_unknown = false;
    std::optional<std::chrono::milliseconds> last_attempt_ago = {};
    std::chrono::steady_clock::time_point deadline = {};
    std::stop_token stop_token = {};
  };
  explicit Lease(Fields fields) : fields_(std::move(fields)) {}

  /// The key by which the remote service detects duplicates: 64 hexadecimal digits. It is the
  /// SHA-256 (FIPS 180-4) of the scope and the idempotency key, the same for all attempts and
  /// processes.
  [[nodiscard]] const std::string& key() const { return fields_.key; }
  /// The number of this attempt, from 1, among those that are known.
  [[nodiscard]] std::uint32_t attempt() const { return fields_.attempt; }
  /// Whether an earlier attempt may have succeeded: its process crashed, lost its lease, or
  /// received no response.
  [[nodiscard]] bool earlier_attempt_unknown() const { return fields_.earlier_attempt_unknown; }
  /// The time since the previous attempt started, by the clock of the lease store. Nullopt: this is
  /// the first attempt, or the time is unknown. A `reconcile` function needs it: while an earlier
  /// request may be in progress at the remote service, its absence there proves nothing.
  [[nodiscard]] std::optional<std::chrono::milliseconds> last_attempt_ago() const {
    return fields_.last_attempt_ago;
  }
  /// The time at which the handler's `timeout` expires. The stop token is set at the latest then.
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return fields_.deadline; }
  /// Set if the call should return early: its deadline has passed, its lease is lost, or the
  /// shutdown timeout of the process expires. If the call succeeds anyway, pawl records its outcome
  /// if possible.
  [[nodiscard]] const std::stop_token& stop_token() const { return fields_.stop_token; }

 private:
  Fields fields_;
};

/// A call throws it if the remote service has certainly done nothing. The message is retried as
/// after any failure. PermanentError means the same, and that no attempt can help. After any other
/// exception, the outcome is unknown.
class NotDone : public std::runtime_error {
 public:
  /// `retry_after`: the shortest delay before the next attempt, up to 1 hour; 0: the usual delay.
  /// For example, the value of Retry-After (RFC 9110).
  explicit NotDone(const std::string& what, std::chrono::milliseconds retry_after = {})
      : std::runtime_error(what), retry_after_(retry_after) {}
  [[nodiscard]] std::chrono::milliseconds retry_after() const { return retry_after_; }

 private:
  std::chrono::milliseconds retry_after_;
};

/// The result of checking with the remote service whether an earlier attempt has succeeded.
class Found {
 public:
  enum class How { kDone, kNotDone, kUnknown };

  /// The attempt has succeeded. pawl records `response`, as if the call had returned it.
  static Found done(Response response = std::nullopt) { return {How::kDone, std::move(response)}; }
  /// The attempt has done nothing, and will do nothing: pawl calls.
  static Found not_done() { return {How::kNotDone, std::nullopt}; }
  /// The remote service cannot report it yet. The attempt fails, and the message is retried.
  static Found unknown() { return {How::kUnknown, std::nullopt}; }

  [[nodiscard]] How how() const { return how_; }
  [[nodiscard]] const Response& response() const { return response_; }

 private:
  Found(How how, Response response) : how_(how), response_(std::move(response)) {}

  How how_;
  Response response_;
};

}  // namespace pawl
