#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/contention.hpp"

namespace pawl::engine {

/// Calls of a partition, as it was acquired, that have run, and whose outcome is not stored: when
/// each of them may be stored. Behind a lock that is one at a time, with pauses. Knows no threads
/// and no servers. One thread at a time.
class Unstored {
 public:
  using Clock = Contention::Clock;

  /// `longest_look`: within it changes are noticed of which nobody tells.
  Unstored(const FailureOptions& options, Clock::duration longest_look)
      : options_(options), longest_look_(longest_look) {}

  /// One of the calls, after its last attempt.
  struct Call {
    Clock::time_point not_before{};
    /// The attempt waited for a lock in vain, and began then.
    std::optional<Clock::time_point> waited_since;
  };
  /// What is known of the call and its partition now.
  struct Now {
    Clock::time_point time;
    bool given_up = false;    ///< nobody keeps its lease any more
    bool winding_up = false;  ///< its partition is to be let go of, and waits for its calls
  };

  enum class Turn {
    kStore,
    kWait,
    kLetGo,  ///< the lock may be there for long, and the call keeps others from beginning
  };
  [[nodiscard]] Turn turn_of(Call& call, const Now& now);
  /// When turn_of(), which says kWait, may say otherwise.
  [[nodiscard]] Clock::time_point look_again(const Call& call, const Now& now) const;

  void begun() { ++running_; }
  /// The attempt that began at `begun` came back. `waits`: of the message, in vain for a lock.
  void ended(Call& call, const Landing& landing, Clock::time_point begun, Clock::time_point now,
             std::uint32_t& waits);
  /// What its calls waited for is free.
  void lock_released(Clock::time_point now);

 private:
  const FailureOptions& options_;
  const Clock::duration longest_look_;
  Contention contention_;
  std::size_t running_ = 0;  ///< attempts
  std::optional<Clock::time_point> released_at_;
};

}  // namespace pawl::engine
