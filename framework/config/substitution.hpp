#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/files.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// The value of an environment variable; nullopt when it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Replaces ${NAME} and ${file:PATH} in every string of the tree; $${ becomes ${. What was put in
/// is not looked at again. Problems name the place and the variable or file, never a value.
void substitute(Node& root, const EnvironmentLookup& environment, Files& files,
                std::vector<Problem>& problems);

}  // namespace pawl::config
