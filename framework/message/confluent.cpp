#include "message/confluent.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

namespace pawl::message {

std::optional<std::string> confluent_schema(std::string_view value) {
  constexpr std::size_t kPrefix = 5;
  if (value.size() < kPrefix || value.front() != '\0')
    return std::nullopt;
  std::uint32_t id = 0;
  for (const char c : value.substr(1, kPrefix - 1))
    id = (id << 8U) | static_cast<unsigned char>(c);
  if (id == 0 || id > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
    return std::nullopt;
  return fmt::format("Confluent schema id {}; pawl reads JSON only", id);
}

}  // namespace pawl::message
