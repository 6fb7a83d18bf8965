#pragma once

#include <optional>

#include "redis/error.hpp"

namespace pawl::test {

/// What this throws; nullopt: it returned.
template <typename Function>
std::optional<redis::Error> redis_error(const Function& function) {
  try {
    (void)function();
    return std::nullopt;
  } catch (const redis::Error& error) {
    return error;
  }
}

}  // namespace pawl::test
