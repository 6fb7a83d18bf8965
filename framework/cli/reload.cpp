#include "cli/reload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <vector>

#include "pawl/errors.hpp"

namespace pawl::cli {

std::optional<std::string> reload_problem(const std::function<void()>& read) {
  try {
    read();
    return std::nullopt;
  } catch (const ConfigErrors& errors) {
    return fmt::format("{}", fmt::join(errors.problems(), "; "));
  } catch (const std::exception& error) {
    return error.what();
  }
}

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

}  // namespace pawl::cli
