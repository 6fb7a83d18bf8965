#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// A --set as a layer of its own: the tables around the option, and its value. Behind
/// kafka.librdkafka everything is the property's name, dots included. On an error adds a problem
/// and returns nullopt.
[[nodiscard]] std::optional<Node> parse_override(const std::string& text,
                                                 std::vector<Problem>& problems);

}  // namespace pawl::config
