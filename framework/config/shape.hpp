#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/option_table.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// Checks the keys of one layer (the user's file, or one --set) against the table: unknown ones
/// become problems that name the nearest known key, and leave the layer, as do sections that are no
/// tables.
void check_shape(Node& layer, OptionTable table, std::vector<Problem>& problems);

}  // namespace pawl::config
