#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/failure.hpp"
#include "engine/halt_texts.hpp"
#include "engine/previous_owners.hpp"
#include "engine/run_gate.hpp"
#include "engine/window.hpp"
#include "ledger/types.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// A partition as it was acquired, for those who run its messages side by side.
struct HeldPartition {
  TopicPartition name;
  std::string topic_id;
  ledger::SourceId source{};
  ledger::Fence acquired;
  std::optional<PreviousOwner> previous_owner;
  std::chrono::steady_clock::time_point acquired_at = std::chrono::steady_clock::now();
  /// It is to be let go of: what no hand has begun comes back.
  std::atomic<bool> winding_up{false};
  /// Last offset that its owner has seen stored since it was acquired; raised by the owner's
  /// thread.
  std::atomic<std::int64_t> last_stored{acquired.stored.last()};

  /// As of now: to be asked for before the transaction begins that is to be fenced by it.
  [[nodiscard]] ledger::Fence fence() const {
    return {acquired.id, acquired.epoch, ledger::Position::behind(last_stored)};
  }
};

/// What became of a message that was run by itself.
struct Landing {
  enum class How {
    kFinished,  ///< with `outcome`
    kLater,     ///< to be run again after `wait`
    kHalt,      ///< its partition halts at it
    kGiveWay,   ///< the partition has another owner
    kAskAgain,  ///< where the partition stands, the register knows
    kLost,      ///< the connection broke; whether it is finished says the register
  };
  How how = How::kFinished;
  ledger::Outcome outcome = ledger::Outcome::kApplied;
  std::chrono::steady_clock::duration wait{};
  AttemptHalt halt = {};
  std::string why = {};
  bool here = false;       ///< kLater: at once, in the same hand
  bool not_run = false;    ///< kLater: it was turned away, or there was no session to run it
  bool no_answer = false;  ///< kLater: its connection broke
  /// kLater: it waited for a lock in vain; its partition says when it runs again.
  bool waited_for_lock = false;
  /// kLater: its call has run, and what became of it is to be stored again after `wait`.
  bool unstored = false;
  bool suspect = false;  ///< kLost: its handler may be what breaks connections

  /// PostgreSQL has answered it: else it says nothing of locks.
  [[nodiscard]] bool answered() const { return !not_run && !no_answer && how != How::kLost; }
};

/// A message on its way to a hand. `landed` is called once, on the thread that ran it.
struct Errand {
  std::shared_ptr<HeldPartition> partition;
  Window::Entry entry;
  std::function<void(const Errand&, const Landing&)> landed;
  std::chrono::steady_clock::time_point given = std::chrono::steady_clock::now();
  /// Of a suspect: its leave to run alone, which its worker ends once its mark is removed.
  std::shared_ptr<RunGate::Pass> alone = {};
  /// Of a suspect: it is not to run, because this counts against it.
  std::optional<Failure> failed = {};
};

}  // namespace pawl::engine
