#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/offset_register.hpp"
#include "pawl/message.hpp"
#include "postgres/frame.hpp"
#include "postgres/request.hpp"

namespace pawl::engine {

/// The last statement of a message's transaction, which raises unless the message is ours to end:
/// the register's advance, or a dead letter's resolution.
class LastStep {
 public:
  virtual ~LastStep() = default;
  /// `transaction`: id of the one that claimed the key; empty: unchecked.
  virtual void request(postgres::Request& request, const std::string& transaction,
                       ledger::Outcome outcome) const = 0;
  /// A statement that goes before the claim where the transaction keeps one snapshot: what it locks
  /// must not be changed by others between the snapshot and the last step. False: there is none.
  [[nodiscard]] virtual bool request_first(postgres::Request& /*request*/) const { return false; }
  /// Statements that go right before the last one. `one_snapshot`: the transaction sees what there
  /// was at its first statement.
  virtual void defer_before(postgres::Frame& /*frame*/, bool /*one_snapshot*/) const {}
  /// Whoever may begin the message now, where the partition has a fence.
  [[nodiscard]] virtual std::optional<ledger::Fence> fence() const { return std::nullopt; }
  /// Whether request() must have the transaction's id, and so an answer before COMMIT is sent.
  [[nodiscard]] virtual bool names_transaction() const { return true; }
  /// Whether messages of a parked record key must be held back. A replay is what they wait for.
  [[nodiscard]] virtual bool respects_parking() const = 0;
  /// Whether a message that nobody handles, or that has no key, may be left out where the options
  /// say so. Who replays one wants its effects.
  [[nodiscard]] virtual bool may_leave_out() const = 0;
};

/// Moves the register past a message that came from Kafka.
class AdvanceStep final : public LastStep {
 public:
  /// `fence`: the partition's, as it was acquired.
  AdvanceStep(const ledger::OffsetRegister& offsets, const TopicPartition& partition,
              ledger::Advance advance, std::optional<ledger::Fence> fence = std::nullopt)
      : offsets_(offsets), partition_(partition), advance_(std::move(advance)), fence_(fence) {}

  void request(postgres::Request& request, const std::string& transaction,
               ledger::Outcome outcome) const override {
    auto advance = advance_;
    advance.transaction = transaction;
    advance.outcome = outcome;
    offsets_.advance(request, partition_, advance);
  }
  [[nodiscard]] std::optional<ledger::Fence> fence() const override { return fence_; }
  [[nodiscard]] bool respects_parking() const override { return true; }
  [[nodiscard]] bool may_leave_out() const override { return true; }

 private:
  const ledger::OffsetRegister& offsets_;
  const TopicPartition& partition_;
  ledger::Advance advance_;
  std::optional<ledger::Fence> fence_;
};

/// Finishes a message ahead of the stored offset, which follows.
class FinishStep final : public LastStep {
 public:
  FinishStep(const ledger::MessagesAhead& ahead, const ledger::Fence& fence,
             const ledger::RecordAhead& record)
      : ahead_(ahead), fence_(fence), record_(record) {}

  void defer_before(postgres::Frame& frame, bool one_snapshot) const override {
    frame.defer_own(ahead_.hold_fence(fence_));
    if (one_snapshot)
      frame.defer_own(ahead_.keep_fence(fence_));
  }
  void request(postgres::Request& request, const std::string& transaction,
               ledger::Outcome outcome) const override {
    ahead_.finish(request, fence_, record_, transaction, outcome);
  }
  [[nodiscard]] bool names_transaction() const override { return false; }
  [[nodiscard]] std::optional<ledger::Fence> fence() const override { return fence_; }
  [[nodiscard]] bool respects_parking() const override { return true; }
  [[nodiscard]] bool may_leave_out() const override { return true; }

 private:
  const ledger::MessagesAhead& ahead_;
  ledger::Fence fence_;
  ledger::RecordAhead record_;
};

}  // namespace pawl::engine
