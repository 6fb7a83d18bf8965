#include "ops/alerts_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <system_error>

namespace pawl::ops {
namespace {

using std::chrono::milliseconds;

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Closes what it owns.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0)
      ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

/// The input as a file in memory: unlike a pipe it never blocks, and nobody has to read it.
int memory_file(const std::string& content) {
  const int file = ::memfd_create("pawl alert", MFD_CLOEXEC);
  if (file < 0)
    return -1;
  std::string_view left(content);
  while (!left.empty()) {
    const auto written = ::write(file, left.data(), left.size());
    if (written <= 0)
      break;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

/// This process' environment with the variables added or replaced.
std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view known(*entry);
    const bool replaced =
        std::any_of(variables.begin(), variables.end(), [&](const auto& variable) {
          return known.starts_with(variable.first) &&
                 known.substr(variable.first.size()).starts_with('=');
        });
    if (!replaced)
      result.emplace_back(known);
  }
  for (const auto& [name, value] : variables)
    result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// posix_spawn is safe beside other threads: between fork and exec it runs no code of ours.
int spawn(const std::vector<std::string>& command, std::vector<std::string> environment, int input,
          pid_t& child) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // Libraries may have opened some without CLOEXEC.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);

  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);

  auto arguments = command;
  const auto argv = pointers(arguments);
  const auto envp = pointers(environment);
  const int error = ::posix_spawn(&child, arguments.front().c_str(), &files, &attributes,
                                  argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

int reap(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    // A program that ignores SIGCHLD has its children reaped by the kernel.
    if (errno != EINTR)
      return 0;
  }
  return status;
}

}  // namespace

std::string alert_command_problem(const AlertOptions& options) {
  if (options.command.empty())
    return {};
  const auto& path = options.command.front();
  struct stat found{};
  std::string problem;
  if (::stat(path.c_str(), &found) != 0) {
    problem = reason(errno);
  } else if (!S_ISREG(found.st_mode)) {
    problem = "it is no file";
  } else if (::access(path.c_str(), X_OK) != 0) {
    problem = "it is not executable for this user";
  }
  if (problem.empty())
    return {};
  return fmt::format("alerts.command cannot be run: {}: {}; correct the path or chmod +x it", path,
                     problem);
}

AlertCommand::AlertCommand(const AlertOptions& options)
    : command_(options.command), timeout_(options.timeout), hurry_(::eventfd(0, EFD_CLOEXEC)) {
  if (hurry_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
}

AlertCommand::~AlertCommand() {
  ::close(hurry_);
}

void AlertCommand::end_by(Clock::time_point deadline) {
  deadline_ = deadline;
  const std::uint64_t one = 1;
  static_cast<void>(::write(hurry_, &one, sizeof one) == sizeof one);
}

std::string AlertCommand::run(const std::string& input,
                              const std::vector<std::pair<std::string, std::string>>& environment) {
  const Descriptor file(memory_file(input));
  if (file.get() < 0)
    return fmt::format("no memory for its input: {}", reason(errno));
  pid_t child = -1;
  if (const int error = spawn(command_, environment_with(environment), file.get(), child);
      error != 0) {
    return fmt::format("it cannot be started: {}", reason(error));
  }
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const int unwatched = process.get() < 0 ? errno : 0;
  const bool ended = unwatched == 0 && ends_in_time(process.get());
  // Its group has its number until it is reaped.
  if (!ended)
    ::kill(-child, SIGKILL);
  const int status = reap(child);
  if (unwatched != 0) {
    return fmt::format(
        "it was killed, since this system does not let it be watched (pidfd_open: "
        "{}); it takes Linux 5.3, and a seccomp profile that allows the call",
        reason(unwatched));
  }
  if (!ended)
    return "it had not ended in time, and was killed";
  if (WIFSIGNALED(status))
    return fmt::format("it was ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0)
    return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
  return {};
}

bool AlertCommand::ends_in_time(int process) const {
  const auto longest = Clock::now() + timeout_;
  std::array<pollfd, 2> watched{{{process, POLLIN, 0}, {hurry_, POLLIN, 0}}};
  while (true) {
    const auto until = std::min(longest, deadline_.load());
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    // Once it is known that time is short, there is nothing more to hear.
    const nfds_t count = deadline_.load() == Clock::time_point::max() ? 2 : 1;
    const int ready = ::poll(watched.data(), count,
                             static_cast<int>(std::max<milliseconds::rep>(0, left.count())));
    if (ready > 0 && (watched[0].revents & POLLIN) != 0)
      return true;
    if (Clock::now() >= until)
      return false;
    if (ready < 0 && errno != EINTR)
      return false;
  }
}

}  // namespace pawl::ops
