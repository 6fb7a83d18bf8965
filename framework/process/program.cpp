#include "process/program.hpp"

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
#include <cstdint>
#include <system_error>

namespace pawl::process {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};

std::string reason(int error) {
  return std::generic_category().message(error);
}

/// Closes what it owns.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }
  void own(int number) {
    close();
    number_ = number;
  }
  void close() {
    if (number_ >= 0)
      ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

/// The input as a file in memory: unlike a pipe it never blocks, and nobody has to read it.
int memory_file(const std::string& content) {
  const int file = ::memfd_create("pawl input", MFD_CLOEXEC);
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
/// `output` below zero: dropped.
int spawn(const std::vector<std::string>& command, std::vector<std::string> environment, int input,
          int output, pid_t& child) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output >= 0 ? output : STDERR_FILENO, STDOUT_FILENO);
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

std::string command_problem(std::string_view option, const std::vector<std::string>& command) {
  if (command.empty())
    return {};
  const auto& path = command.front();
  struct stat found{};
  std::string problem;
  if (::stat(path.c_str(), &found) != 0) {
    problem = reason(errno);
  } else if (!S_ISREG(found.st_mode)) {
    problem = "it is not a file";
  } else if (::access(path.c_str(), X_OK) != 0) {
    problem = "it is not executable for this user";
  }
  if (problem.empty())
    return {};
  return fmt::format("{} cannot be run: {}: {}. Fix the path, or run chmod +x", option, path,
                     problem);
}

Program::Program(std::vector<std::string> command, milliseconds timeout,
                 std::size_t most_output) noexcept
    : command_(std::move(command)),
      timeout_(timeout),
      most_output_(most_output),
      hurry_(::eventfd(0, EFD_CLOEXEC)) {}

Program::~Program() {
  if (hurry_ >= 0)
    ::close(hurry_);
}

void Program::end_by(Clock::time_point deadline) {
  deadline_ = deadline;
  const std::uint64_t one = 1;
  static_cast<void>(::write(hurry_, &one, sizeof one) == sizeof one);
}

Program::Outcome Program::run(const Input& input) {
  if (hurry_ < 0)
    return {"no file descriptor is available to supervise it", {}};
  const Descriptor file(memory_file(input.text));
  if (file.get() < 0)
    return {fmt::format("out of memory for its input: {}", reason(errno)), {}};
  Descriptor ours;
  Descriptor its;
  if (most_output_ > 0) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      return {fmt::format("no pipe for its output: {}", reason(errno)), {}};
    ours.own(ends[0]);
    its.own(ends[1]);
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  }
  pid_t child = -1;
  if (const int error =
          spawn(command_, environment_with(input.environment), file.get(), its.get(), child);
      error != 0) {
    return {fmt::format("it cannot be started: {}", reason(error)), {}};
  }
  its.close();
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const int unwatched = process.get() < 0 ? errno : 0;
  Outcome outcome;
  const auto end =
      unwatched != 0 ? End::kLate : wait(process.get(), ours.get(), input.unwanted, outcome.output);
  // Its group has its number until it is reaped.
  if (end != End::kExited)
    ::kill(-child, SIGKILL);
  const int status = reap(child);
  if (unwatched != 0) {
    outcome.problem = fmt::format(
        "it was killed, because this system does not allow pidfd_open ({}). pawl requires Linux "
        "5.3 and a seccomp profile that allows this call",
        reason(unwatched));
  } else if (end == End::kWroteTooMuch) {
    outcome.problem = fmt::format("it wrote more than {} bytes, and was killed", most_output_);
  } else if (end == End::kUnwanted) {
    outcome.problem = "it was killed, because its result is no longer needed";
  } else if (end == End::kLate) {
    outcome.problem = "it did not exit in time, and was killed";
  } else if (WIFSIGNALED(status)) {
    outcome.problem = fmt::format("it was terminated by signal {}", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    outcome.problem = fmt::format("it exited with code {}", WEXITSTATUS(status));
  }
  if (!outcome.problem.empty())
    outcome.output.clear();
  return outcome;
}

/// False: there is nothing now, or never any more.
bool Program::read_some(int output, std::string& text) const {
  std::array<char, 4096> part{};
  const auto count = ::read(output, part.data(), part.size());
  if (count > 0)
    text.append(part.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

Program::End Program::wait(int process, int output, const std::atomic<bool>* unwanted,
                           std::string& text) const {
  const auto longest = Clock::now() + timeout_;
  // poll(2) passes over descriptors below zero.
  std::array<pollfd, 3> watched{{{process, POLLIN, 0}, {hurry_, POLLIN, 0}, {output, POLLIN, 0}}};
  while (true) {
    if (unwanted != nullptr && unwanted->load())
      return End::kUnwanted;
    const auto until = std::min(longest, deadline_.load());
    auto left = std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(until - Clock::now()));
    if (unwanted != nullptr)
      left = std::min(left, kLook);
    // Once it is known that time is short, there is nothing more to hear.
    if (deadline_.load() != Clock::time_point::max())
      watched[1].fd = -1;
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR)
      return End::kLate;
    const bool exited = ready > 0 && (watched[0].revents & POLLIN) != 0;
    if (ready > 0 && watched[2].fd >= 0 && (exited || watched[2].revents != 0)) {
      while (text.size() <= most_output_ && read_some(output, text)) {
      }
      if (text.size() > most_output_)
        return End::kWroteTooMuch;
      // Nobody has its other end any more.
      if ((watched[2].revents & POLLHUP) != 0)
        watched[2].fd = -1;
    }
    if (exited)
      return End::kExited;
    if (Clock::now() >= until)
      return End::kLate;
  }
}

}  // namespace pawl::process
