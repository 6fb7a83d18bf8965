#pragma once

#include <chrono>
#include <string>

#include <pawl/testing/child_process.hpp>

namespace pawl::test {

/// Whether a signal has stopped the process (state T of proc(5)); it need be no child of ours.
bool is_stopped(int pid);

/// Waits until is_stopped(). Throws when it ends instead.
void wait_until_stopped(testing::ChildProcess& process, std::chrono::milliseconds deadline);

/// How often a text occurs in what the process has written so far.
int occurrences(const testing::ChildProcess& process, const std::string& text);

/// The most messages of one flight: COMMITs that were sent before an answer was read. The process
/// was started with --events.
int longest_flight(const testing::ChildProcess& process);

/// Prints what a process wrote when the test leaves the scope by a failure.
class ShowOnFailure {
 public:
  ShowOnFailure(std::string name, const testing::ChildProcess& process);
  ~ShowOnFailure();
  ShowOnFailure(const ShowOnFailure&) = delete;
  ShowOnFailure& operator=(const ShowOnFailure&) = delete;

 private:
  std::string name_;
  const testing::ChildProcess& process_;
  int exceptions_;
};

/// SIGTERM; the process must leave cleanly in time, else throws with what it wrote.
void stop_cleanly(testing::ChildProcess& process);

}  // namespace pawl::test
