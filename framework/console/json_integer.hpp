#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "console/json.hpp"

namespace pawl::cli {

/// The integer, which must be one that the type can hold: nlohmann's get() would cut off what does
/// not fit, and take fractions and booleans. Throws std::invalid_argument, whose text names `name`.
template <typename Number>
[[nodiscard]] Number integer_from(const Json& json, const char* name) {
  if (json.is_number_unsigned()) {
    if (const auto number = json.get<std::uint64_t>(); std::in_range<Number>(number))
      return static_cast<Number>(number);
  } else if (json.is_number_integer()) {
    if (const auto number = json.get<std::int64_t>(); std::in_range<Number>(number))
      return static_cast<Number>(number);
  }
  throw std::invalid_argument(
      json.is_number() ? fmt::format("{} is not an integer of {} bits", name, 8 * sizeof(Number))
                       : fmt::format("{} is not an integer", name));
}

}  // namespace pawl::cli
