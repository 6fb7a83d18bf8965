#pragma once

#include <cstdint>
#include <optional>

namespace pawl::engine {

/// What a worker does with a partition.
enum class Phase : std::uint8_t {
  kAcquiring,    ///< the register has not given it to us yet, or must be asked again
  kPositioning,  ///< acquired; Kafka is being told where to deliver from
  kRunning,
  kStopped,  ///< halted or paused: waits for an operator
};

/// What may happen to a partition.
enum class Happening : std::uint8_t {
  kGranted,       ///< the register gives it to us, and it may run
  kSeekTaken,     ///< Kafka delivers from its position
  kSeekAgain,     ///< what comes is not what was asked for, or nothing comes
  kRest,          ///< nothing is tried for long, so what was fetched makes room for others
  kMakeRoom,      ///< of its window only what has begun stays, and the rest is fetched again
  kStop,          ///< it halts, or is paused
  kAskAgain,      ///< its epoch, the session or the position does not hold any more
  kTopicInDoubt,  ///< its topic may have been removed or made anew
};

/// The phase that follows (docs/architecture/partition.md). Nullopt: that changes nothing.
[[nodiscard]] constexpr std::optional<Phase> after(Phase phase, Happening what) {
  switch (what) {
    case Happening::kGranted:
      return phase == Phase::kAcquiring ? std::optional(Phase::kPositioning) : std::nullopt;
    case Happening::kSeekTaken:
      return phase == Phase::kPositioning ? std::optional(Phase::kRunning) : std::nullopt;
    case Happening::kSeekAgain:
    case Happening::kRest:
    case Happening::kMakeRoom:
      return phase == Phase::kRunning ? std::optional(Phase::kPositioning) : std::nullopt;
    case Happening::kStop:
      return Phase::kStopped;
    case Happening::kAskAgain:
      return Phase::kAcquiring;
    case Happening::kTopicInDoubt:
      // While positioning too: the topic may have gone between its acquire and now. A partition
      // that is halted or paused looks at its topic once an operator resumes it.
      return phase == Phase::kPositioning || phase == Phase::kRunning
                 ? std::optional(Phase::kAcquiring)
                 : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace pawl::engine
