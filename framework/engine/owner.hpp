#pragma once

#include <string>

namespace pawl::engine {

/// A name for this process in the database: host, process id and a random part. Another one at each
/// call.
[[nodiscard]] std::string make_owner();

}  // namespace pawl::engine
