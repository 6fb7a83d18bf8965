#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

namespace pawl::engine {

/// Lets one partition of this process at a time fetch what may end the process, so that a crash
/// names it. After each turn the process works for as long as the turn took. Nobody blocks; a
/// partition that is turned away asks again. Any thread.
class FetchTurn {
 public:
  using Clock = std::chrono::steady_clock;

  /// True: `who` has the turn until it gives it back.
  [[nodiscard]] bool take(const void* who, Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    if (holder_ == who)
      return true;
    if (holder_ != nullptr || now < next_)
      return false;
    holder_ = who;
    taken_at_ = now;
    return true;
  }
  /// Nothing unless `who` has the turn.
  void give_back(const void* who, Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    if (holder_ != who)
      return;
    holder_ = nullptr;
    next_ = now + std::max<Clock::duration>(now - taken_at_, kLeastWork);
  }

 private:
  static constexpr std::chrono::milliseconds kLeastWork{100};

  std::mutex mutex_;
  const void* holder_ = nullptr;  // guarded by mutex_
  Clock::time_point taken_at_{};  // guarded by mutex_
  Clock::time_point next_{};      // guarded by mutex_
};

}  // namespace pawl::engine
