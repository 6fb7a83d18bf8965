#include "ledger/connection_limits.hpp"

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

// reserved_connections is of PostgreSQL 16 and later. A limit of -1 is none.
constexpr const char* kLimits = R"sql(
  SELECT current_setting('max_connections')::bigint
           - current_setting('superuser_reserved_connections')::bigint
           - coalesce(current_setting('reserved_connections', true), '0')::bigint,
         (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),
         (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user)
)sql";

}  // namespace

ConnectionLimits::Least ConnectionLimits::least() const {
  Least result{server, "The server (max_connections)"};
  if (database && *database < result.limit)
    result = {*database, "The database (CONNECTION LIMIT)"};
  if (role && *role < result.limit)
    result = {*role, "The role (CONNECTION LIMIT)"};
  return result;
}

ConnectionLimits connection_limits(postgres::Session& session) {
  const auto found = session.exec({"", kLimits});
  const auto* row = found.get();
  return {integer(row, 0, 0), optional_integer(row, 0, 1), optional_integer(row, 0, 2)};
}

}  // namespace pawl::ledger
