#pragma once

#include <cstdint>
#include <optional>

#include "pawl/message.hpp"

namespace pawl::message {

/// Milliseconds since 1970, as Kafka and pawl's tables write it; -1: none.
[[nodiscard]] inline std::int64_t milliseconds_of(std::optional<Timestamp> time) {
  return time ? time->time_since_epoch().count() : -1;
}

/// The other way round.
[[nodiscard]] inline std::optional<Timestamp> timestamp_of(std::int64_t milliseconds) {
  return milliseconds == -1 ? std::nullopt
                            : std::optional(Timestamp{std::chrono::milliseconds{milliseconds}});
}

}  // namespace pawl::message
