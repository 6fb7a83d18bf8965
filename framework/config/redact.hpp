#pragma once

#include <string>
#include <string_view>

namespace pawl::config {

/// A libpq connection URI or string for logs and error texts: as keywords and values, each as libpq
/// understands it, and "***" in the place of those that may be a secret. What can never connect
/// comes back as "(connection string)": a part of a password may then stand in any place. Source:
/// PostgreSQL, libpq, "Connection Strings" and "Parameter Key Words".
[[nodiscard]] std::string redact_url(const std::string& url);

/// The same in short, without what it does not set: "USER@HOST:PORT/DATABASE", with "HOST:PORT" of
/// each server.
[[nodiscard]] std::string short_url(const std::string& url);

/// "psql -d 'dbname=payments host=db' -U postgres -c 'SELECT 1'": a command for a shell with which
/// an administrator runs `sql` in the database of this URL, or of the result of redact_url(). It
/// omits pawl's role and its credentials, which may lack the privilege, and values that may be
/// secret: psql reads a password from its own sources or prompts for it.
[[nodiscard]] std::string psql_text(const std::string& url, std::string_view sql);

}  // namespace pawl::config
