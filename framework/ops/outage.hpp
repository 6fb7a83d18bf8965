#pragma once

#include <chrono>
#include <mutex>
#include <optional>

namespace pawl::ops {

/// An outage that workers notice one after another, and its end likewise: only the whole is worth
/// telling. Any thread.
class Outage {
 public:
  using Clock = std::chrono::steady_clock;

  /// `quiet`: so long after the last worker is back nobody must have lost it again.
  explicit Outage(Clock::duration quiet) : quiet_(quiet) {}

  /// Somebody has lost the server. True: that is news.
  bool lost(Clock::time_point now);
  /// Somebody has it (again).
  void found(Clock::time_point now);
  /// How long an outage took that has ended; once.
  std::optional<Clock::duration> take_ended(Clock::time_point now);

 private:
  const Clock::duration quiet_;
  std::mutex mutex_;
  std::optional<Clock::time_point> away_since_;  // guarded by mutex_
  std::optional<Clock::time_point> back_since_;  // guarded by mutex_
};

}  // namespace pawl::ops
