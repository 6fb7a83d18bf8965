#pragma once

#include <string>

#include "pawl/message.hpp"

namespace pawl::message {

/// "2026-01-31T00:00:00Z": RFC 3339, UTC. Milliseconds are cut off.
[[nodiscard]] std::string rfc3339(Timestamp time);

/// "2026-01-31T00:00:00.000Z"
[[nodiscard]] std::string rfc3339_milliseconds(Timestamp time);

}  // namespace pawl::message
