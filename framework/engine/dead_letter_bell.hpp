#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "pawl/observer.hpp"

namespace pawl::engine {

/// Tells the thread that feeds dead_letters.topic that this process has stored a letter, or that it
/// shall end. One thread waits; any may ring.
class DeadLetterBell final : public Observer {
 public:
  using Clock = std::chrono::steady_clock;

  void on_event(const Event& event) noexcept override;

  /// Begins the end: what goes on afterwards must be done by `deadline`. `feed_rest`: letters that
  /// were not begun with as well.
  void stop(Clock::time_point deadline, bool feed_rest);

  /// Returns after `least` and when a letter was stored, at the latest after `most`; at once when
  /// it is to end.
  void wait(std::chrono::milliseconds least, std::chrono::milliseconds most);

  [[nodiscard]] bool stopping() const;
  [[nodiscard]] bool feed_rest() const;
  /// Never before stop() was called.
  [[nodiscard]] bool overdue() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All guarded by mutex_.
  bool rung_ = false;
  bool stopping_ = false;
  bool feed_rest_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
};

}  // namespace pawl::engine
