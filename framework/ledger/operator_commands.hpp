#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/instant.hpp"
#include "ledger/skipped_messages.hpp"
#include "ledger/types.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What an operator saw of a partition when they decided.
struct SeenState {
  PartitionState state = PartitionState::kRunning;
  std::string since;            ///< RegisterRow::state_since
  std::string halt_code;        ///< of RegisterRow::halt
  std::string halt_cause;       ///< of RegisterRow::halt
  std::string operator_reason;  ///< RegisterRow::operator_reason
};

/// One change of one partition by an operator.
struct OperatorChange {
  TopicPartition partition;
  std::optional<Position> position;     ///< nullopt keeps it
  std::optional<PartitionState> state;  ///< nullopt keeps the state; running or paused
  std::string action;                   ///< as the history names it: "offsets set"
  /// Messages come again and must be recognised by their keys: refused when keys were removed
  /// beyond `pruned_to`, which is what was known when the position was chosen.
  bool needs_keys = false;
  std::optional<Instant> pruned_to;
  std::string reason;
  std::optional<SeenState> seen;  ///< nullopt: whatever its state is by now
};

/// Leaves out the message that comes next.
struct OperatorSkip {
  TopicPartition partition;
  Position stored;     ///< where the register must still stand
  OwnerEpoch epoch{};  ///< the epoch that it must still have
  std::string reason;
  std::optional<Halt> halt = {};  ///< nullopt: the partition is not halted
  bool unread = false;            ///< of the message only its place is known
};

/// What operators do to the register while processes run. Each command is an acquire: it waits for
/// the commit in flight, raises the owner's epoch and is recorded, in one synchronous transaction;
/// the running owner is fenced, acquires again and finds the change. Each throws postgres::Error
/// (55P03: the row was locked for longer than the lock timeout) or postgres::InDoubt.
class OperatorCommands {
 public:
  OperatorCommands(const std::string& schema, ConsumerId consumer);

  /// Returns the last processed offset before the change; nullopt: its state is not what was seen,
  /// and nothing was changed. PW004: the partition has no row yet. PW010: keys were removed since
  /// `pruned_to` was read; nothing was changed.
  std::optional<std::int64_t> change(postgres::Session& session,
                                     const OperatorChange& change) const;

  /// States where a partition begins that appeared after its topic's first contact, before any
  /// process met it. False: one has met it meanwhile; nothing was changed.
  [[nodiscard]] bool begin_partition(postgres::Session& session,
                                     const OperatorChange& change) const;

  /// Records `message`, if it was read with its payload, and moves the offset past it; a halt ends,
  /// a pause stays. PW001, PW002: the partition has moved since it was read; nothing was changed.
  void skip(postgres::Session& session, const OperatorSkip& skip, const Message& message) const;

 private:
  ConsumerId consumer_;
  SkippedMessages skipped_;
  postgres::Statement change_;
  postgres::Statement change_seen_;
  postgres::Statement begin_partition_;
  postgres::Statement require_unpruned_;
  postgres::Statement forget_time_;
  postgres::Statement advance_;
};

}  // namespace pawl::ledger
