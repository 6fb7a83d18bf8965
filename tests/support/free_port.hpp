#pragma once

#include <cstdint>

namespace pawl::test {

/// A port of 127.0.0.1 that nobody has just now, below the range of outgoing connections.
[[nodiscard]] std::uint16_t free_port();

}  // namespace pawl::test
