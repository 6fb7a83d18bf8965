#pragma once

#include <chrono>
#include <map>

namespace pawl::engine {

/// When a call of a worker or a hand is given up, and when the process ends because that was of no
/// help. Time in which the process did not run (SIGSTOP, a machine that was paused) counts against
/// no call. Pure, for one thread that looks in short intervals.
class CallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Verdict {
    kWait,
    kGiveUp,      ///< its connection is to be broken; given once for each call
    kGivenUp,     ///< once more, in case that it has another connection by now
    kEndProcess,  ///< it goes on although it was given up long ago
  };

  /// The thread that looks wanted to rest for `asked`, and did so from one moment to the other.
  void rested(std::chrono::milliseconds asked, Clock::time_point from, Clock::time_point to);

  /// At what `whose` has been doing since then, and may for `limit`.
  [[nodiscard]] Verdict look(const void* whose, Clock::time_point since,
                             std::chrono::milliseconds limit, Clock::time_point now);

 private:
  struct GivenUp {
    Clock::time_point since;  ///< the call
    Clock::time_point at;
  };

  Clock::time_point running_since_{};
  std::map<const void*, GivenUp> given_up_;
};

}  // namespace pawl::engine
