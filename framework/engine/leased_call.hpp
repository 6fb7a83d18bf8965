#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/lease_keeper.hpp"
#include "engine/remote_services.hpp"
#include "handlers/leased_handler.hpp"
#include "handlers/router.hpp"
#include "leases/store/key_leases.hpp"
#include "ledger/halt.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "pawl/response.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// The key of a message is another attempt's for now: the message waits, and that is no failure.
class LeasePending : public std::runtime_error {
 public:
  LeasePending(const std::string& what, std::chrono::milliseconds wait)
      : std::runtime_error(what), wait_(wait) {}
  /// After that it is worth asking again.
  [[nodiscard]] std::chrono::milliseconds wait() const { return wait_; }

 private:
  std::chrono::milliseconds wait_;
};

/// Only an operator can determine what an earlier call did: the partition halts at the message.
class UnknownOutcome : public std::runtime_error {
 public:
  explicit UnknownOutcome(ledger::Halt halt)
      : std::runtime_error(halt.cause), halt_(std::move(halt)) {}
  /// Without its location.
  [[nodiscard]] const ledger::Halt& halt() const { return halt_; }

 private:
  ledger::Halt halt_;
};

/// How an attempt begins.
enum class Beginning {
  kCall,
  kReconcile,  ///< the other side is asked first
  kHalt,       ///< only an operator can say
};
/// `unknown_for`: so long ago began the first attempt of which nobody knows whether it did
/// anything; nullopt: there is none. `remote_memory`: zero for ever.
[[nodiscard]] Beginning beginning_of(OnUnknown on_unknown,
                                     std::optional<std::chrono::milliseconds> unknown_for,
                                     std::chrono::milliseconds remote_memory);

/// One attempt of a leased handler's message, from its lease on until its outcome is stored. One
/// thread at a time.
class LeasedCall {
 public:
  enum class Outcome {
    kNone,      ///< not yet
    kDone,      ///< with a response
    kNotBegun,  ///< nothing was called; error() says why
    kNotDone,   ///< this attempt did nothing; error() says why
    kUnknown,   ///< nobody knows; error() says what happened
  };

  /// `held`: the lease was given, as `answer` says.
  LeasedCall(LeaseKeeper& keeper, const handlers::Binding& binding, std::string remote_key,
             TopicPartition partition, const ledger::LeaseSubject& subject,
             const ledger::LeaseAnswer& answer, std::shared_ptr<HeldLease> held,
             RemoteServices::Turn turn);
  /// If its outcome is not stored, its keeper gives the lease back, with what is known.
  ~LeasedCall();
  LeasedCall(const LeasedCall&) = delete;
  LeasedCall& operator=(const LeasedCall&) = delete;

  /// Calls, unless the outcome is known. Throws nothing.
  void run(const Message& message) noexcept;

  [[nodiscard]] const handlers::Binding& binding() const { return binding_; }
  [[nodiscard]] const ledger::KeyLease& lease() const { return held_->lease(); }
  /// What the other side sees of the key.
  [[nodiscard]] const std::string& remote_key() const { return remote_key_; }
  [[nodiscard]] const ledger::LeaseSubject& subject() const { return subject_; }
  [[nodiscard]] std::uint32_t attempt() const { return attempt_; }
  /// Of run(); zero: it had nothing to do.
  [[nodiscard]] std::chrono::steady_clock::duration took() const { return took_; }
  [[nodiscard]] Outcome outcome() const { return outcome_; }
  [[nodiscard]] const TopicPartition& partition() const { return partition_; }
  [[nodiscard]] bool may_be_done() const {
    return outcome_ == Outcome::kDone || outcome_ == Outcome::kUnknown;
  }
  [[nodiscard]] const Response& response() const { return response_; }
  /// What its lease is given back with where it is not recorded.
  [[nodiscard]] ledger::GivenBack known() const;
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }
  /// Whether what earlier attempts did is known now, to be nothing.
  [[nodiscard]] bool settled() const { return settled_; }

  /// The connection broke when it was recorded.
  void note_doubt() { in_doubt_ = true; }
  [[nodiscard]] bool in_doubt() const { return in_doubt_; }
  /// Its outcome is stored, or the lease is another's: nothing more is to be done.
  void end() { ended_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// It cannot be stored for so long that others need not wait for it any more.
  [[nodiscard]] bool is_given_up() const { return keeper_.is_over(*held_); }

 private:
  void call(const Message& message);
  void not_done(std::exception_ptr error);
  [[nodiscard]] std::exception_ptr after(const handlers::RemoteOutage& outage);
  void require_lease(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] Lease lease_for(std::chrono::steady_clock::time_point deadline) const;

  LeaseKeeper& keeper_;
  const handlers::Binding& binding_;
  const std::string remote_key_;
  const TopicPartition partition_;
  const ledger::LeaseSubject subject_;
  const std::uint32_t attempt_;
  const std::optional<std::chrono::milliseconds> unknown_for_;
  const std::optional<std::chrono::milliseconds> last_ago_;
  const std::shared_ptr<HeldLease> held_;
  RemoteServices::Turn turn_;
  Outcome outcome_ = Outcome::kNone;
  std::chrono::steady_clock::duration took_{0};
  Response response_;
  std::exception_ptr error_;
  bool settled_ = false;
  bool in_doubt_ = false;
  bool ended_ = false;
};

}  // namespace pawl::engine
