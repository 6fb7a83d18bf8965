#pragma once

// Starts a consumer, waits until it runs, and stops it.
//
//   #include <chrono>
//   #include <csignal>
//   #include <pawl/testing/child_process.hpp>
//
//   bool starts_and_stops(const std::filesystem::path& folder) {
//     using namespace std::chrono_literals;
//     pawl::testing::ChildProcess consumer("payments", {"run", "--config", "payments.toml"},
//                                          {.output = folder / "consumer.log"});
//     consumer.wait_for_output("consumer_started", 30s);
//     consumer.kill(SIGTERM);
//     return consumer.wait(30s).success();
//   }

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pawl::testing {

/// How a process exited. Exactly one of the two is set.
struct ExitStatus {
  std::optional<int> code;    ///< exit code, 0..255
  std::optional<int> signal;  ///< the signal that ended it

  bool success() const { return code == 0; }
  bool operator==(const ExitStatus&) const = default;
};

/// The status as a text: "exit code 3" or "signal 9".
std::string to_string(const ExitStatus& status);

/// The environment and the files of a child process.
struct ChildOptions {
  /// Variables that are added to the environment of this process. Nullopt: the variable is removed.
  std::map<std::string, std::optional<std::string>> environment = {};
  /// The file to which stdout and stderr are appended. Empty: the child inherits those of this
  /// process.
  std::filesystem::path output = {};
  /// The file to which stderr alone is appended. Empty: see `output`.
  std::filesystem::path errors = {};
  /// Empty: that of this process.
  std::filesystem::path working_directory = {};
};

/// A program that runs next to the test, with an empty stdin. The object owns the process: its
/// destructor kills the process (SIGKILL) and reaps it. Any thread may call all methods.
class ChildProcess {
 public:
  /// Starts the program. If its name has no slash, it is searched in PATH. Throws std::system_error
  /// if it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               ChildOptions options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// Sends a signal, such as SIGTERM, SIGKILL, SIGSTOP, or SIGCONT. If the process was reaped, it
  /// does nothing.
  void kill(int signal);

  /// Whether the process has not exited. Throws std::system_error if another part of the program
  /// has reaped it, as do wait() and wait_for_output().
  bool running();

  /// Waits until the process exits. Throws Timeout after `deadline`; the process then continues.
  ExitStatus wait(std::chrono::milliseconds deadline);

  /// The current content of the file ChildOptions::output.
  std::string output() const;

  /// Waits until output() contains `text`. Throws Timeout after `deadline`, and std::runtime_error
  /// if the process exited without writing `text`. Both texts contain the end of the output.
  void wait_for_output(const std::string& text, std::chrono::milliseconds deadline);

 private:
  std::optional<ExitStatus> poll();

  ChildOptions options_;
  std::string name_;
  pid_t pid_ = -1;
  std::mutex mutex_;
  std::optional<ExitStatus> status_;  // guarded by mutex_; set once it is reaped
};

}  // namespace pawl::testing
