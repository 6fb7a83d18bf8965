#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::ops {

/// Why the command cannot be run on this machine, and what to do; empty: it can, or there is none.
[[nodiscard]] std::string alert_command_problem(const AlertOptions& options);

/// Runs the alert command, one run at a time, in a process group of its own: with an empty signal
/// mask, no descriptors of ours, its output dropped. Used by one thread, except for end_by().
class AlertCommand {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AlertCommand(const AlertOptions& options);
  ~AlertCommand();
  AlertCommand(const AlertCommand&) = delete;
  AlertCommand& operator=(const AlertCommand&) = delete;

  /// Waits for its end up to the timeout, then ends the whole process group with SIGKILL. Returns
  /// what went wrong, for people; empty: it ended with exit code 0.
  std::string run(const std::string& input,
                  const std::vector<std::pair<std::string, std::string>>& environment);

  /// A run in progress, and those to come, are ended at this time at the latest. From any thread.
  void end_by(Clock::time_point deadline);

 private:
  [[nodiscard]] bool ends_in_time(int process) const;

  const std::vector<std::string> command_;
  const std::chrono::milliseconds timeout_;
  int hurry_ = -1;  ///< eventfd, readable once end_by() was called
  std::atomic<Clock::time_point> deadline_{Clock::time_point::max()};
};

}  // namespace pawl::ops
