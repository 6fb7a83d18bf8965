#pragma once

#include <string>
#include <string_view>

namespace pawl::config {

/// A libpq connection URI or string with only those values that hold no secret (hosts, names, files
/// and the like), and "***" in the place of others, for logs and error texts. When in doubt it
/// hides more than it must: a text that cannot be read as a connection string comes back as
/// "(connection string)". Source: PostgreSQL, libpq, "Connection Strings" and "Parameter Key
/// Words".
[[nodiscard]] std::string redact_url(std::string_view url);

}  // namespace pawl::config
