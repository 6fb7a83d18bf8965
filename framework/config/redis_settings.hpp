#pragma once

#include <pawl/options.hpp>

#include "redis/settings.hpp"

namespace pawl::config {

/// Where [redis] says that Redis is; of options in which validate() finds nothing.
[[nodiscard]] redis::Settings redis_settings(const RedisOptions& options);

}  // namespace pawl::config
