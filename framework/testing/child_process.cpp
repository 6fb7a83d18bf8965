#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <pawl/testing/child_process.hpp>
#include <pawl/testing/wait.hpp>
#include <stdexcept>
#include <system_error>

namespace pawl::testing {

namespace {

[[noreturn]] void throw_errno(int error, const std::string& what) {
  throw std::system_error{error, std::generic_category(), what};
}

std::vector<std::string> merged_environment(
    const std::map<std::string, std::optional<std::string>>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text{*entry};
    if (!changes.contains(text.substr(0, text.find('=')))) {
      merged.push_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    if (value) {
      merged.push_back(name + "=" + *value);
    }
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

/// posix_spawn's two parameter objects, freed with this one.
class SpawnParameters {
 public:
  SpawnParameters() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnParameters() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnParameters(const SpawnParameters&) = delete;
  SpawnParameters& operator=(const SpawnParameters&) = delete;

  void write_to(int descriptor, const std::filesystem::path& file) {
    posix_spawn_file_actions_addopen(&actions, descriptor, file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  }

  /// The child starts with every signal unblocked and unhandled, whatever the test did to its own.
  void reset_signals() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

}  // namespace

std::string to_string(const ExitStatus& status) {
  if (status.signal) {
    return fmt::format("signal {}", *status.signal);
  }
  return fmt::format("exit code {}", status.code.value_or(-1));
}

ChildProcess::ChildProcess(const std::filesystem::path& program,
                           const std::vector<std::string>& arguments, ChildOptions options)
    : options_{std::move(options)}, name_{program.filename()} {
  SpawnParameters parameters;
  posix_spawn_file_actions_addopen(&parameters.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!options_.output.empty()) {
    parameters.write_to(STDOUT_FILENO, options_.output);
    posix_spawn_file_actions_adddup2(&parameters.actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (!options_.errors.empty()) {
    parameters.write_to(STDERR_FILENO, options_.errors);
  }
  if (!options_.working_directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&parameters.actions, options_.working_directory.c_str());
  }
  parameters.reset_signals();

  std::vector<std::string> argument_texts{program.string()};
  argument_texts.insert(argument_texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment_texts = merged_environment(options_.environment);
  const int error =
      posix_spawnp(&pid_, program.c_str(), &parameters.actions, &parameters.attributes,
                   pointers(argument_texts).data(), pointers(environment_texts).data());
  if (error != 0) {
    throw_errno(error, fmt::format("cannot start {} (check the path and its permissions)",
                                   program.string()));
  }
}

ChildProcess::~ChildProcess() {
  const std::lock_guard lock{mutex_};
  if (!status_) {
    ::kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) == -1 && errno == EINTR) {
    }
  }
}

std::optional<ExitStatus> ChildProcess::poll() {
  const std::lock_guard lock{mutex_};
  if (!status_) {
    int raw = 0;
    const pid_t reaped = waitpid(pid_, &raw, WNOHANG);
    if (reaped == -1 && errno != EINTR) {
      throw_errno(errno,
                  fmt::format("waitpid of {} (does another part of the program reap it?)", name_));
    }
    if (reaped == pid_) {
      status_ = WIFSIGNALED(raw) ? ExitStatus{std::nullopt, WTERMSIG(raw)}
                                 : ExitStatus{WEXITSTATUS(raw), std::nullopt};
    }
  }
  return status_;
}

void ChildProcess::kill(int signal) {
  // Under the lock nobody reaps it, so the number cannot have become another process'.
  const std::lock_guard lock{mutex_};
  if (!status_) {
    ::kill(pid_, signal);
  }
}

bool ChildProcess::running() {
  return !poll();
}

ExitStatus ChildProcess::wait(std::chrono::milliseconds deadline) {
  std::optional<ExitStatus> status;
  wait_until([&] { return (status = poll()).has_value(); }, deadline,
             fmt::format("{} (pid {}) to exit", name_, pid_));
  return *status;
}

std::string ChildProcess::output() const {
  return read_file(options_.output);
}

void ChildProcess::wait_for_output(const std::string& text, std::chrono::milliseconds deadline) {
  const auto tail = [this] {
    const std::string all = output();
    return all.substr(all.size() > 2000 ? all.size() - 2000 : 0);
  };
  const auto written = [&] {
    const bool ended = !running();  // asked first: what it wrote before it ended counts
    if (output().find(text) != std::string::npos) {
      return true;
    }
    if (ended) {
      throw std::runtime_error{
          fmt::format("{} exited ({}) without writing \"{}\". The end of its output:\n{}", name_,
                      to_string(*poll()), text, tail())};
    }
    return false;
  };
  try {
    wait_until(written, deadline, fmt::format("\"{}\" in the output of {}", text, name_));
  } catch (const Timeout& timeout) {
    throw Timeout{fmt::format("{}. The end of the output:\n{}", timeout.what(), tail())};
  }
}

}  // namespace pawl::testing
