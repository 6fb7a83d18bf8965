#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postgres/session.hpp"

namespace pawl::ledger {

/// How many connections PostgreSQL allows at the same time; nullopt: as many as the server does.
struct ConnectionLimits {
  std::int64_t server = 0;  ///< max_connections, without those that are reserved
  std::optional<std::int64_t> database;
  std::optional<std::int64_t> role;

  struct Least {
    std::int64_t limit = 0;
    std::string whose;  ///< "The server (max_connections)"
  };
  [[nodiscard]] Least least() const;
};

/// Those of the session's server, database, and role. Throws postgres::Error.
[[nodiscard]] ConnectionLimits connection_limits(postgres::Session& session);

}  // namespace pawl::ledger
