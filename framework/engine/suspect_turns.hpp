#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// When the suspects of a process may run, each of them alone, and when all other messages may.
/// Suspects run one after another in a turn of up to kTurn; the last one that begins in it may take
/// longer. If another message was turned away meanwhile, the turn ends, and the others have the
/// process for as long as they waited and at least for kTurn. Among the partitions whose suspects
/// ask, the one whose suspects have run for the shortest time goes first, so that a suspect that
/// waits for a lock does not take the turns of others. Pure: times are given. One thread.
class SuspectTurns {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kTurn{100};

  /// A suspect of this partition asks. True: no other message may begin, and the suspect may run
  /// once those that run have come back and no other suspect runs.
  [[nodiscard]] bool ask(Clock::time_point now, const TopicPartition& partition) {
    end_if_left(now);
    forget_if_left(now);
    auto& own = partitions_[partition];
    own.asked_at = now;
    if ((!closed_ && now < others_until_) || !is_first(own, now))
      return false;
    asks_ = &own;
    closed_ = true;
    asked_at_ = now;
    return true;
  }
  /// It runs. If it has not come back by `until`, others run beside it. Returns the run's number.
  std::uint64_t began(Clock::time_point now, Clock::time_point until = Clock::time_point::max()) {
    running_ = true;
    runs_ = asks_;
    last_began_at_ = now;
    alone_until_ = until;
    if (!began_at_)
      began_at_ = now;
    return ++run_;
  }
  /// That run has come back.
  void ended(Clock::time_point now, std::uint64_t run) {
    if (!running_ || run != run_)
      return;
    running_ = false;
    asked_at_ = now;
    // Until it asks again, or kTurn is over, it counts as one that asks.
    runs_->asked_at = now;
    runs_->ran += now - last_began_at_;
    if (turned_away_since_ && is_over(now))
      end(now);
  }

  /// Any other message asks. True: it may run.
  [[nodiscard]] bool ask_among_others(Clock::time_point now) {
    end_if_left(now);
    if (closed_ && !turned_away_since_) {
      turned_away_since_ = now;
      // A worker cannot ask for its other partitions while it runs a suspect.
      if (!running_ && is_over(now)) {
        turned_away_since_ = last_began_at_;
        end(now);
      }
    }
    return !closed_;
  }

  [[nodiscard]] bool running() const { return running_; }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  struct Suspects {
    Clock::time_point asked_at{};
    Clock::duration ran{};  ///< all of them together
  };

  /// Whether no partition that asks as well has had less time.
  [[nodiscard]] bool is_first(const Suspects& own, Clock::time_point now) const {
    return std::ranges::none_of(partitions_, [&](const auto& other) {
      return now - other.second.asked_at <= kTurn && other.second.ran < own.ran;
    });
  }
  /// Once no suspect has asked within kTurn, what each partition had does not count any more.
  void forget_if_left(Clock::time_point now) {
    if (!running_ && std::ranges::all_of(partitions_, [&](const auto& partition) {
          return now - partition.second.asked_at > kTurn;
        }))
      partitions_.clear();
  }
  /// No suspect begins in the turn any more, if others wait.
  [[nodiscard]] bool is_over(Clock::time_point now) const {
    return began_at_ && now - *began_at_ >= kTurn;
  }
  /// A suspect that does not ask again within kTurn was processed, or its partition has left.
  void end_if_left(Clock::time_point now) {
    if (closed_ && (running_ ? now >= alone_until_ : now - asked_at_ > kTurn)) {
      running_ = false;
      end(now);
    }
  }
  void end(Clock::time_point now) {
    if (turned_away_since_)
      others_until_ = now + std::max<Clock::duration>(kTurn, now - *turned_away_since_);
    closed_ = false;
    began_at_.reset();
    turned_away_since_.reset();
  }

  bool closed_ = false;   ///< to others: it is the turn of suspects
  bool running_ = false;  ///< a suspect
  std::uint64_t run_ = 0;
  std::map<TopicPartition, Suspects> partitions_;
  Suspects* asks_ = nullptr;  ///< in partitions_: the one whose suspect may run
  Suspects* runs_ = nullptr;  ///< whose suspect runs
  Clock::time_point asked_at_{};
  std::optional<Clock::time_point> began_at_;  ///< the first suspect of the turn
  Clock::time_point last_began_at_{};
  Clock::time_point alone_until_{};
  std::optional<Clock::time_point> turned_away_since_;
  Clock::time_point others_until_ = Clock::time_point::min();
};

}  // namespace pawl::engine
