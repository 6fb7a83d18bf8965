#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/contention.hpp"
#include "engine/errand.hpp"
#include "engine/window.hpp"
#include "handlers/topic_plan.hpp"

namespace pawl::engine {

/// What a partition has ahead of its stored offset: the messages that run side by side, and what is
/// known of others from before it was acquired. One thread.
class AheadOfOffset {
 public:
  using Clock = std::chrono::steady_clock;

  /// Records taken from a partition's stream at once, and so the most messages in a window of calls
  /// in the log's order.
  static constexpr std::size_t kMostTaken = 64;

  /// `plan`: of its topic.
  explicit AheadOfOffset(const handlers::TopicPlan& plan)
      : together_(plan.max_ahead > 1),
        calls_(plan.calls),
        window_(together_ ? plan.max_ahead : kMostTaken) {}

  ~AheadOfOffset();
  AheadOfOffset(const AheadOfOffset&) = delete;
  AheadOfOffset& operator=(const AheadOfOffset&) = delete;

  /// As long as this is not so the partition needs nothing of it.
  [[nodiscard]] bool is_used() const { return together_ || !known_.empty() || !window_.empty(); }
  /// Messages of the partition may run side by side. If not, what is in its window runs one after
  /// the other: calls, and what was finished before the partition was acquired.
  [[nodiscard]] bool together() const { return together_; }
  /// Handlers of the partition call out.
  [[nodiscard]] bool calls() const { return calls_; }
  [[nodiscard]] Window& window() { return window_; }
  [[nodiscard]] const Window& window() const { return window_; }

  /// The partition was acquired: this is known of what stands above its stored offset.
  void acquired(std::shared_ptr<HeldPartition> held, const std::vector<ledger::KnownAhead>& known);
  [[nodiscard]] const std::shared_ptr<HeldPartition>& held() const { return held_; }
  /// Null: nothing is.
  [[nodiscard]] const ledger::KnownAhead* known(std::int64_t offset) const;
  /// Whether the record is the one of which that is known.
  [[nodiscard]] bool is_same(const ledger::KnownAhead& known, const Inbox::Item& item) const;
  /// The stored offset is there; what was known below is behind.
  void stored(ledger::Position position);
  /// Adds to the window what stands behind all that it has had. False: it does not, and is not
  /// added; something was lost on its way.
  bool add(const Window::Entry& entry, ledger::Position stored);
  /// Behind the last message in the window, or an end of the log; `stored`: the stored offset.
  [[nodiscard]] ledger::Position taken(ledger::Position stored) const {
    return std::max(stored, tail_);
  }
  /// There was an end of the log behind the last message.
  void skipped_end(std::int64_t end) { tail_ = std::max(tail_, ledger::Position::before(end)); }
  /// Of the last message in the window; `stored`: of the stored offset.
  [[nodiscard]] std::optional<std::int32_t> leader_epoch(std::optional<std::int32_t> stored) const {
    return window_.empty() ? stored : window_[window_.size() - 1].item.leader_epoch;
  }
  /// The window's messages are fetched again, if at all.
  void clear();
  /// Drops the last messages of the window, which have not started; they are fetched again.
  void drop_unbegun();

  /// The handler of the message at this offset may be what broke its connection: it runs alone once
  /// all before it is stored.
  void suspect(std::int64_t offset) { suspects_.insert(offset); }
  [[nodiscard]] bool is_suspect(std::int64_t offset) const { return suspects_.contains(offset); }
  void absolve(std::int64_t offset) { suspects_.erase(offset); }

  void want_halt(const AttemptHalt& halt);
  [[nodiscard]] bool halt_wanted() const { return halt_.has_value(); }
  /// Of the message at which it is wanted.
  [[nodiscard]] std::int64_t halt_offset() const { return halt_->halt.message_offset.value(); }
  std::optional<AttemptHalt> take_halt() { return std::exchange(halt_, std::nullopt); }

  [[nodiscard]] Contention& contention() { return contention_; }
  /// Messages that waited for a lock in vain may begin.
  void lock_released(Clock::time_point now) {
    contention_.lock_released(now);
    window_.lock_released(now);
  }
  /// No message that arrives can start before the window has changed.
  [[nodiscard]] bool is_closed() const {
    return window_.full() || !together_ || contention_.pauses();
  }

  /// Nothing more is begun.
  void wind_up();
  [[nodiscard]] bool winding_up() const { return winding_up_; }

  [[nodiscard]] Clock::time_point next_pass() const { return next_pass_; }
  void pass_again(Clock::time_point when) { next_pass_ = when; }
  /// When there is something to do; nullopt: not before something happens.
  [[nodiscard]] std::optional<Clock::time_point> due() const;

 private:
  const bool together_;
  const bool calls_;
  Window window_;
  Contention contention_;
  std::shared_ptr<HeldPartition> held_;
  ledger::Position tail_;  ///< behind what was added last, or an end of the log
  std::map<std::int64_t, ledger::KnownAhead> known_;
  std::set<std::int64_t> suspects_;
  std::optional<AttemptHalt> halt_;
  bool winding_up_ = false;
  Clock::time_point next_pass_{};
};

}  // namespace pawl::engine
