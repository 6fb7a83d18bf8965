#include "config/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <span>

namespace pawl::config {

namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

// Largest first: formatting takes the first that divides.
constexpr std::array<Unit, 5> kDurations{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
constexpr std::array<Unit, 4> kSizes{
    {{"GiB", std::int64_t{1} << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}};

std::optional<std::int64_t> parse(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string number_text{text.substr(0, digits)};
  const char* const end = number_text.data() + number_text.size();
  std::int64_t number = 0;
  if (std::from_chars(number_text.data(), end, number).ec != std::errc{})
    return std::nullopt;
  const std::string_view name = text.substr(digits);
  for (const Unit& unit : units) {
    if (unit.name != name)
      continue;
    if (number > std::numeric_limits<std::int64_t>::max() / unit.factor)
      return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

std::string format(std::int64_t number, std::span<const Unit> units, std::string_view zero) {
  if (number == 0)
    return std::string{zero};
  for (const Unit& unit : units) {
    if (number % unit.factor == 0)
      return fmt::format("{}{}", number / unit.factor, unit.name);
  }
  return fmt::format("{}{}", number, units.back().name);
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto number = parse(text, kDurations);
  if (!number)
    return std::nullopt;
  return std::chrono::milliseconds{*number};
}

std::string format_duration(std::chrono::milliseconds duration) {
  // One day is 24h to most people; more are days.
  const bool days = duration > std::chrono::hours{24};
  return format(duration.count(), std::span(kDurations).subspan(days ? 0 : 1), "0s");
}

std::optional<std::size_t> parse_size(std::string_view text) {
  const auto number = parse(text, kSizes);
  if (!number)
    return std::nullopt;
  return static_cast<std::size_t>(*number);
}

std::string format_size(std::size_t bytes) {
  return format(static_cast<std::int64_t>(bytes), kSizes, "0B");
}

}  // namespace pawl::config
