#pragma once

#include <functional>
#include <optional>
#include <string>

#include "console/commands.hpp"
#include "ops/service_manager.hpp"

namespace pawl::cli {

/// What speaks against beginning anew with the configuration as it is now; nullopt: nothing.
/// `read` reads it, and throws what is wrong with it.
[[nodiscard]] std::optional<std::string> reload_problem(const std::function<void()>& read);

/// This process becomes the program as it is installed now, with the same arguments and process id.
/// Returns only if that cannot be, with the reason.
[[nodiscard]] std::string begin_anew(const Program& program, const ops::ServiceManager& manager);

}  // namespace pawl::cli
