#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::config {

/// "500ms", "45s", "5m", "2h" or "7d": a whole number and a unit. nullopt: not a duration, or
/// beyond the range of 64 bits.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// As parse_duration reads it, in the largest unit that leaves a whole number; a day is "24h".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);

/// "512B", "64KiB", "1MiB" or "1GiB": a whole number and a binary unit, to bytes.
[[nodiscard]] std::optional<std::size_t> parse_size(std::string_view text);

/// As parse_size reads it, in the largest unit that leaves a whole number.
[[nodiscard]] std::string format_size(std::size_t bytes);

}  // namespace pawl::config
