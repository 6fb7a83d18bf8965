#pragma once

#include <nlohmann/json.hpp>

#include "pawl/condition.hpp"

namespace pawl::ops {

/// A condition as `/status` and `pawl status --json` print it.
[[nodiscard]] nlohmann::ordered_json condition_json(const Condition& condition);

}  // namespace pawl::ops
