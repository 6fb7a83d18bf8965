#pragma once

#include <pawl/options.hpp>

#include "config/document.hpp"
#include "config/reader.hpp"

namespace pawl::config {

/// The options of a merged tree (reference, user's file, --set). Types, names and units are checked
/// here, ranges and everything else in validate().
[[nodiscard]] Options read_options(const Node& root, Findings& findings);

}  // namespace pawl::config
