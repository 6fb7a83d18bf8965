#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pawl::testing {

/// How a process ended: exactly one of the two is set.
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;

  bool success() const { return code == 0; }
  bool operator==(const ExitStatus&) const = default;
};

/// "exit code 3" or "signal 9".
std::string to_string(const ExitStatus& status);

struct ChildOptions {
  /// Added to this process' environment; nullopt removes a variable.
  std::map<std::string, std::optional<std::string>> environment = {};
  /// Receives stdout and stderr; appended to. Empty: they go where this process' own go.
  std::filesystem::path output = {};
  /// Receives stderr apart from stdout, when not empty.
  std::filesystem::path errors = {};
  std::filesystem::path working_directory = {};
};

/// A program run beside the test. stdin is empty. The object owns the process: when it goes, the
/// process is killed (SIGKILL) and reaped. All methods may be called from any thread.
class ChildProcess {
 public:
  /// Starts the program; one without a slash is looked up in PATH. Throws std::system_error when
  /// it cannot be started.
  ChildProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               ChildOptions options = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  /// Sends a signal, for example SIGKILL, SIGSTOP, SIGCONT. A process that has ended gets nothing
  /// (and no other process either): that is no error.
  void kill(int signal);

  bool running();

  /// Waits for the end. Throws Timeout when it has not ended by then; the process then continues.
  ExitStatus wait(std::chrono::milliseconds deadline);

  /// What the file of ChildOptions::output holds by now.
  std::string output() const;

  /// Waits until the output holds this text. Throws Timeout, or std::runtime_error when the
  /// process ended without writing it; both show the output's end.
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
