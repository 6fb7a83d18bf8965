#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace pawl::engine {

/// When a thread that goes round was last seen to: shows from outside whether it still goes. One
/// thread beats, once a round and after whatever may take long in it; any thread looks.
class Pulse {
 public:
  using Clock = std::chrono::steady_clock;

  /// Beats from here on, and rests when this scope ends: rounds are over then, or not due.
  class Beating {
   public:
    explicit Beating(Pulse& pulse) : pulse_(pulse) { pulse_.beat(); }
    ~Beating() { pulse_.last_ = kResting; }
    Beating(const Beating&) = delete;
    Beating& operator=(const Beating&) = delete;

   private:
    Pulse& pulse_;
  };

  /// Until later than now where a wait begins that ends by then.
  void beat(Clock::time_point until = Clock::now()) { last_ = until.time_since_epoch().count(); }

  [[nodiscard]] bool rests() const { return last_ == kResting; }

  /// Since the last beat; zero while it rests, and before what it was told to wait for is over.
  [[nodiscard]] std::chrono::milliseconds silent_for(Clock::time_point now = Clock::now()) const {
    const Clock::rep last = last_;
    if (last == kResting)
      return std::chrono::milliseconds{0};
    const auto passed = now - Clock::time_point(Clock::duration(last));
    return std::max(std::chrono::milliseconds{0},
                    std::chrono::duration_cast<std::chrono::milliseconds>(passed));
  }

 private:
  static constexpr Clock::rep kResting = -1;

  std::atomic<Clock::rep> last_{kResting};
};

}  // namespace pawl::engine
