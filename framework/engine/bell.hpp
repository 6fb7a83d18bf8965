#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace pawl::engine {

/// Tells the thread of a background task that there is something to do, or that it shall end. One
/// thread waits; any may ring.
class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  void ring();

  /// Begins the end: what goes on afterwards must be done by `deadline`. `finish`: what was not
  /// begun with as well.
  void stop(Clock::time_point deadline, bool finish);

  /// Returns after `least` and when it was rung, at the latest after `most`; at once when it is to
  /// end. True: it was rung.
  bool wait(std::chrono::milliseconds least, std::chrono::milliseconds most);

  [[nodiscard]] bool stopping() const { return stopping_; }
  /// For what waits on its own and looks at it from time to time.
  [[nodiscard]] const std::atomic<bool>* stop_flag() const { return &stopping_; }
  [[nodiscard]] bool finish() const;
  /// Never before stop() was called.
  [[nodiscard]] bool overdue() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_{false};  // changes under mutex_
  // Guarded by mutex_:
  bool rung_ = false;
  bool finish_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
};

}  // namespace pawl::engine
