#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::process {

/// Why the command of an option cannot be run on this machine, and what to do; empty: it can, or
/// there is none.
[[nodiscard]] std::string command_problem(std::string_view option,
                                          const std::vector<std::string>& command);

/// A program of the user's and its arguments, without a shell: run in a process group of its own,
/// with an empty signal mask and no descriptors of ours. What it writes to stderr is dropped, since
/// it may hold a secret. One run at a time; used by one thread, except for end_by().
class Program {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout`: of a run. `most_output`: bytes of its stdout that are wanted; 0: dropped as well.
  Program(std::vector<std::string> command, std::chrono::milliseconds timeout,
          std::size_t most_output = 0) noexcept;
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  struct Input {
    std::string text = {};  ///< on its stdin
    /// Added to this process' environment, or in the place of what that has.
    std::vector<std::pair<std::string, std::string>> environment = {};
    /// Set by another thread when nobody waits for this run any more; may be null. Looked at every
    /// 50 ms.
    const std::atomic<bool>* unwanted = nullptr;
  };
  struct Outcome {
    /// What went wrong, for people, without anything that it wrote; empty: it ended with exit code
    /// 0.
    std::string problem;
    std::string output;
  };
  /// Waits for its end up to the timeout, then ends the whole process group with SIGKILL.
  Outcome run(const Input& input);

  /// A run in progress, and those to come, are ended at this time at the latest. From any thread.
  void end_by(Clock::time_point deadline);

 private:
  enum class End { kExited, kLate, kUnwanted, kWroteTooMuch };
  [[nodiscard]] End wait(int process, int output, const std::atomic<bool>* unwanted,
                         std::string& text) const;
  [[nodiscard]] bool read_some(int output, std::string& text) const;

  const std::vector<std::string> command_;
  const std::chrono::milliseconds timeout_;
  const std::size_t most_output_;
  int hurry_;  ///< eventfd, readable once end_by() was called; below zero: there was none to have
  std::atomic<Clock::time_point> deadline_{Clock::time_point::max()};
};

}  // namespace pawl::process
