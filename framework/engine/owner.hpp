#pragma once

#include <string>

#include "pawl/options.hpp"

namespace pawl::engine {

/// A name for this process in the database: host, process id and a random part. Another one at each
/// call.
[[nodiscard]] std::string make_owner();

/// For how long Kafka keeps the place of a process that ended without leaving the group, for
/// people.
[[nodiscard]] std::string place_kept_text(const KafkaOptions& options);

}  // namespace pawl::engine
