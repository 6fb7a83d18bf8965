#pragma once

#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// Every key of a [[handler]]; the reference shows them in a comment, as arrays have no default.
[[nodiscard]] const std::vector<std::string>& handler_keys();

/// Checks the keys of one layer (the user's file, or one --set) against the reference: unknown ones
/// become problems that name the nearest known key, and leave the layer, as do sections that are no
/// tables.
void check_shape(Node& layer, const Node& reference, std::vector<Problem>& problems);

}  // namespace pawl::config
