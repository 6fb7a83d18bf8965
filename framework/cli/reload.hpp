#pragma once

#include <functional>
#include <string>

#include "cli/service.hpp"
#include "console/commands.hpp"
#include "ops/log_observer.hpp"
#include "ops/service_manager.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Whether the configuration as it is now can be begun with, which is told. `check` reads it, and
/// throws what is wrong with it.
[[nodiscard]] bool may_reload(const std::function<void()>& check, ops::LogObserver& log,
                              Service& service);

/// How a command that reloads has ended.
struct Ended {
  int code = kDone;
  bool anew = false;  ///< by a reload
};

/// This process becomes the program as it is installed now, with the same arguments and process id.
/// Returns only if that cannot be, with the reason. What other threads do ends with it.
[[nodiscard]] std::string begin_anew(const Program& program, const ops::ServiceManager& manager);

/// Runs it with the configuration that `read` gives; returns its exit code. Behind a reload this
/// process becomes the program as it is installed now, with the same arguments and process id.
/// Throws FatalError if that cannot be.
int run_with_reload(
    const Program& program, const std::function<Options()>& read,
    const std::function<Ended(const ops::ServiceManager&, const Options&)>& command);

}  // namespace pawl::cli
