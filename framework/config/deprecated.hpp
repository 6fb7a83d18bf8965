#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/option_table.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// Puts what one layer (the user's file, or one --set) says under an old name of an option under
/// the name that it has now, with a warning for a person to read. A layer that has both is wrong.
void rename_deprecated(Node& layer, OptionTable table, std::vector<std::string>& warnings,
                       std::vector<Problem>& problems);

}  // namespace pawl::config
