#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "pawl/options.hpp"

namespace pawl::engine {

struct Landing;

/// A partition whose messages run ahead, and wait in vain for locks that others hold. Once no
/// message has come back otherwise, they begin one at a time with pauses between them, so that a
/// lock on the tables of one topic does not occupy the threads of all. One that comes back
/// otherwise ends that: then the lock was of some messages only. Knows no threads and no servers.
/// One thread.
class Contention {
 public:
  using Clock = std::chrono::steady_clock;

  /// A message that began at `begun` waited for a lock in vain until `now`. Returns how many rounds
  /// in a row ended so; those that began in one round count once.
  std::uint32_t waited(Clock::time_point begun, Clock::time_point now) {
    if (rounds_ == 0 || begun >= round_ended_) {
      ++rounds_;
      round_ended_ = now;
    }
    return rounds_;
  }
  /// No message begins before.
  void pause(Clock::time_point until) { until_ = until; }
  /// What was waited for is free: a pause ends.
  void lock_released(Clock::time_point now) {
    if (until_)
      until_ = now;
  }
  /// A message came back, and had not waited for a lock in vain.
  void passed() {
    rounds_ = 0;
    until_.reset();
  }

  /// Whether one more message may begin beside the `running` ones.
  bool lets_begin(Clock::time_point now, std::size_t running) {
    if (rounds_ == 0)
      return true;
    if (until_ && now < *until_)
      return false;
    until_.reset();
    return running == 0;
  }
  [[nodiscard]] bool is_on() const { return rounds_ > 0; }
  [[nodiscard]] bool pauses() const { return until_.has_value(); }
  /// When lets_begin() may say otherwise, or the next message is `due`, if nothing else happens.
  [[nodiscard]] std::optional<Clock::time_point> due(std::optional<Clock::time_point> due,
                                                     std::size_t running) const {
    if (rounds_ == 0)
      return due;
    if (running > 0)
      return std::nullopt;
    return until_ ? until_ : due;
  }

 private:
  std::uint32_t rounds_ = 0;
  Clock::time_point round_ended_{};
  std::optional<Clock::time_point> until_;
};

/// How long a message waits whose attempt began at `begun`, and waited for a lock in vain until
/// `now`. That grows with each such attempt in a row, of the message (`waits`, counted here) or of
/// its partition. No other message begins for up to half of it, and so each of them has its turn
/// before this one.
[[nodiscard]] Contention::Clock::duration wait_in_contention(Contention::Clock::time_point begun,
                                                             Contention::Clock::time_point now,
                                                             const FailureOptions& options,
                                                             Contention& contention,
                                                             std::uint32_t& waits);

/// How long a message that began at `begun` and has come back so waits, if it runs again. One that
/// has not run, or whose connection broke, says nothing of locks.
[[nodiscard]] Contention::Clock::duration wait_after(const Landing& landing,
                                                     Contention::Clock::time_point begun,
                                                     Contention::Clock::time_point now,
                                                     const FailureOptions& options,
                                                     Contention& contention, std::uint32_t& waits);

}  // namespace pawl::engine
