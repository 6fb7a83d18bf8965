#pragma once

#include <string>

namespace pawl::config {

/// A libpq connection URI or string for logs and error texts: as keywords and values, each as libpq
/// understands it, and "***" in the place of those that may be a secret. What can never connect
/// comes back as "(connection string)": a part of a password may then stand in any place. Source:
/// PostgreSQL, libpq, "Connection Strings" and "Parameter Key Words".
[[nodiscard]] std::string redact_url(const std::string& url);

/// The same in short, without what it does not set: "USER@HOST:PORT/DATABASE", with "HOST:PORT" of
/// each server.
[[nodiscard]] std::string short_url(const std::string& url);

}  // namespace pawl::config
