#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "handlers/handler.hpp"
#include "pawl/lease.hpp"

namespace pawl::handlers {

/// A call of which nobody knows whether it did anything.
class UnknownAnswer : public std::runtime_error {
 public:
  /// `retry_after`: as NotDone's.
  explicit UnknownAnswer(const std::string& what, std::chrono::milliseconds retry_after = {})
      : std::runtime_error(what), retry_after_(retry_after) {}
  [[nodiscard]] std::chrono::milliseconds retry_after() const { return retry_after_; }

 private:
  std::chrono::milliseconds retry_after_;
};

/// The remote service has responded that it did nothing.
class NotDoneThere : public NotDone {
 public:
  using NotDone::NotDone;
};

/// A call did nothing because its remote service cannot be used now.
class RemoteOutage : public NotDone {
 public:
  /// `by_status`: it has responded so; else no connection could be made.
  RemoteOutage(const std::string& what, bool by_status, std::chrono::milliseconds retry_after = {})
      : NotDone(what, retry_after), by_status_(by_status) {}
  [[nodiscard]] bool by_status() const { return by_status_; }

 private:
  bool by_status_;
};

/// A handler whose effect is outside of the database: a call under a lease of the message's
/// idempotency key. Immutable after construction; called by all threads.
class LeasedHandler : public Handler {
 public:
  /// Outside of any transaction. Throws NotDone, PermanentError: nothing was done; anything else:
  /// nobody knows.
  virtual Response call(Lease& lease, const Message& message) const = 0;

  /// Who is called, as far as that is known: "https://api.example". Empty: it is not.
  [[nodiscard]] virtual const std::string& remote() const;
  /// It calls only where fewer calls of this process to that one are in hand; 0: always.
  [[nodiscard]] virtual std::uint32_t max_calls() const { return 0; }

  /// Connects to remote(), and asks for nothing. Empty: that works; else why it does not. Nullopt:
  /// it cannot be tried.
  [[nodiscard]] virtual std::optional<std::string> probe() const { return std::nullopt; }

  /// What is known of earlier attempts on the other side. Throws: nothing (yet).
  virtual Found reconcile(Lease& lease, const Message& message) const;

  /// Whether record() does anything.
  [[nodiscard]] virtual bool has_record() const { return false; }
  /// In the transaction that records the response.
  virtual void record(pqxx::dbtransaction& transaction, const Message& message,
                      const Response& response) const;

  /// There is no transaction to apply anything in.
  Response apply(postgres::Frame& frame, const Message& message,
                 message::JsonView& json) const final;
  [[nodiscard]] const LeasedHandler* as_leased_handler() const final { return this; }
};

}  // namespace pawl::handlers
