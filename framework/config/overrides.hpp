#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// A --set in its parts, without the blanks around them.
struct OverrideText {
  std::string option;  ///< as messages name it: a property's name without quotes
  std::string value;
  bool has_value = false;
};
[[nodiscard]] OverrideText split_override(std::string_view text);

/// A --set as a layer of its own: the tables around the option, and its value. Behind
/// kafka.librdkafka everything is the property's name, dots included. On an error adds a problem
/// and returns nullopt. `flag` is what problems call it.
[[nodiscard]] std::optional<Node> parse_override(const std::string& text,
                                                 std::vector<Problem>& problems,
                                                 std::string_view flag = "--set");

}  // namespace pawl::config
