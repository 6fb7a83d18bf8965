#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/batch_pace.hpp"
#include "engine/pipeline_pace.hpp"
#include "engine/verdict.hpp"

namespace pawl::engine {

/// How many messages of a partition go to the server together next, and how long a batch that is
/// not full waits for more. One thread.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  Pace(PipelinePace pipeline, BatchPace batch) : pipeline_(pipeline), batch_(std::move(batch)) {}

  [[nodiscard]] PipelinePace& pipeline() { return pipeline_; }
  [[nodiscard]] const PipelinePace& pipeline() const { return pipeline_; }
  [[nodiscard]] BatchPace& batch() { return batch_; }
  [[nodiscard]] const BatchPace& batch() const { return batch_; }

  /// What was tried failed, and so that many go together next.
  void failed(const Attempt& attempt, Action::Company company);
  /// So many messages are behind; see BatchPace::passed().
  void passed(std::size_t messages, std::int64_t offset, bool one_had_failed, Clock::duration took);
  /// The messages at the head are others now.
  void forget_failures() { batch_.forget_failures(); }

  /// A batch that is not full may wait for more, up to `linger` from the first call on. False: it
  /// has waited enough. While it waits it is looked at from time to time.
  bool lingers(Clock::time_point now, std::chrono::milliseconds linger);
  void stop_lingering() { linger_.reset(); }
  /// When a batch that waits is to be looked at; nullopt: none waits.
  [[nodiscard]] std::optional<Clock::time_point> look_again() const;

 private:
  struct Linger {
    Clock::time_point until;
    Clock::time_point look_again;
  };

  PipelinePace pipeline_;
  BatchPace batch_;
  std::optional<Linger> linger_;
};

}  // namespace pawl::engine
