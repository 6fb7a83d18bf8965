#pragma once

#include <string>

namespace pawl::testing {

struct PostgresAddress {
  std::string host;
  std::string port;
};

/// Where a libpq URL or key=value string points; libpq's defaults where it says nothing. Throws
/// std::invalid_argument when it is malformed or means a Unix socket or several hosts.
PostgresAddress address_of(const std::string& url);

/// The same connection string as a URL with another address.
std::string with_address(const std::string& url, const PostgresAddress& address);

}  // namespace pawl::testing
