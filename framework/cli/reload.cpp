#include "cli/reload.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pawl/errors.hpp"

namespace pawl::cli {

namespace {

/// Names the descriptor under which the next program finds the files that were checked.
constexpr const char* kVariable = "PAWL_CHECKED_FILES";

std::string error_text() {
  return std::generic_category().message(errno);
}

/// What a reload has left for this process; empty: this is none, or another program left it.
config::Files checked_files() {
  const char* const descriptor = std::getenv(kVariable);
  if (descriptor == nullptr)
    return {};
  const int from = std::atoi(descriptor);
  ::unsetenv(kVariable);
  std::string packed;
  std::array<char, 65536> buffer{};
  ssize_t size = ::pread(from, buffer.data(), buffer.size(), 0);
  while (size > 0) {
    packed.append(buffer.data(), static_cast<std::size_t>(size));
    size = ::pread(from, buffer.data(), buffer.size(), static_cast<off_t>(packed.size()));
  }
  ::close(from);
  try {
    return config::Files::unpacked(packed);
  } catch (const std::invalid_argument&) {
    return {};
  }
}

}  // namespace

Reload::Reload(const Program& program, Read read)
    : program_(program),
      read_(std::move(read)),
      options_([this] {
        auto files = checked_files();
        return read_(files);
      }()),
      manager_(ops::ServiceManager::of_environment()) {}

Reload::~Reload() {
  if (accepted_ >= 0)
    ::close(accepted_);
}

/// In memory, because the files hold secrets. The last reload that was accepted counts.
void Reload::keep(const config::Files& files) {
  const auto packed = files.packed();
  const int kept = ::memfd_create("pawl-configuration", MFD_CLOEXEC);
  const auto written = kept < 0 ? -1 : ::write(kept, packed.data(), packed.size());
  if (written != static_cast<ssize_t>(packed.size())) {
    const auto why = error_text();
    if (kept >= 0)
      ::close(kept);
    throw FatalError(fmt::format("its text cannot be kept in memory: {}", why));
  }
  if (accepted_ >= 0)
    ::close(accepted_);
  accepted_ = kept;
}

std::optional<std::string> Reload::problem_of(const std::function<void(const Options&)>& check) {
  try {
    config::Files files;
    check(read_(files));
    keep(files);
    return std::nullopt;
  } catch (const ConfigErrors& errors) {
    return fmt::format("{}", fmt::join(errors.problems(), "; "));
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool Reload::accepts(const std::function<void(const Options&)>& check, ops::LogObserver& log,
                     Service& service) {
  if (const auto problem = problem_of(check)) {
    log.not_reloaded(*problem);
    return false;
  }
  log.reloading();
  service.reloading();
  return true;
}

std::string Reload::begin_anew() const {
  manager_.to_environment();
  auto arguments = program_.arguments;
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Nobody else's connections go along.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::fcntl(accepted_, F_SETFD, 0) == 0)
    ::setenv(kVariable, std::to_string(accepted_).c_str(), 1);
  ::execv(program_.path.c_str(), argv.data());
  return fmt::format("cannot run {}: {}", program_.path, error_text());
}

int run_with_reload(const Program& program, Reload::Read read,
                    const std::function<Ended(Reload&)>& command) {
  Reload reload(program, std::move(read));
  const auto ended = command(reload);
  if (!ended.anew)
    return ended.code;
  throw FatalError(reload.begin_anew());
}

}  // namespace pawl::cli
