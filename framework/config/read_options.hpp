#pragma once

#include <pawl/options.hpp>

#include "config/document.hpp"
#include "config/node_reader.hpp"
#include "config/option_table.hpp"

namespace pawl::config {

/// The options of a merged tree (user's file, --set); what it does not hold has its default. Types
/// and units are checked here, unknown names in shape.hpp, ranges and the rest in validate().
[[nodiscard]] Options read_options(const Node& root, OptionTable table, Findings& findings);

}  // namespace pawl::config
