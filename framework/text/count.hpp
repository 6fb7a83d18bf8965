#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pawl::texts {

/// "1 message", "2 messages". Commands group digits: console/counted.hpp.
[[nodiscard]] inline std::string counted(std::int64_t number, std::string_view one,
                                         std::string_view many) {
  return std::to_string(number).append(" ").append(number == 1 ? one : many);
}

}  // namespace pawl::texts
