#include "cli/reload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "pawl/errors.hpp"

namespace pawl::cli {

namespace {

/// Nullopt: nothing speaks against it.
std::optional<std::string> problem_of(const std::function<void()>& check) {
  try {
    check();
    return std::nullopt;
  } catch (const ConfigErrors& errors) {
    return fmt::format("{}", fmt::join(errors.problems(), "; "));
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string begin_anew(const Program& program, const ops::ServiceManager& manager) {
  manager.to_environment();
  auto arguments = program.arguments;
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Nobody else's connections go along.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execv(program.path.c_str(), argv.data());
  return fmt::format("cannot run {}: {}", program.path, std::generic_category().message(errno));
}

bool may_reload(const std::function<void()>& check, ops::LogObserver& log, Service& service) {
  if (const auto problem = problem_of(check)) {
    log.not_reloaded(*problem);
    return false;
  }
  log.reloading();
  service.reloading();
  return true;
}

int run_with_reload(
    const Program& program, const std::function<Options()>& read,
    const std::function<Ended(const ops::ServiceManager&, const Options&)>& command) {
  const auto options = read();
  const auto manager = ops::ServiceManager::of_environment();
  const auto ended = command(manager, options);
  if (!ended.anew)
    return ended.code;
  throw FatalError(begin_anew(program, manager));
}

}  // namespace pawl::cli
