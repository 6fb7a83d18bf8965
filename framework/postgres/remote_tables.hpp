#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "postgres/session.hpp"

namespace pawl::postgres {

/// A table whose rows are stored by another server, which commits them separately.
struct RemoteTable {
  std::string name;  ///< "schema.table", without quotes: what the statement writes to
  std::string why;   ///< "is a foreign table of the server \"east\""
};

/// The remote tables that a statement writes to: foreign tables, tables with a foreign partition at
/// any level, and tables of Citus. PostgreSQL's own plan names the tables, also those behind views,
/// rules and WITH. `names` are those that the text itself names as targets, as SQL writes them, for
/// statements that cannot be planned with NULL parameters and for plans that name no target.
/// Tables behind functions and triggers are not seen. Leaves nothing behind on the session. Throws
/// Error when the connection is lost; a statement that is wrong writes nothing.
std::vector<RemoteTable> written_remote_tables(Session& session, const std::string& sql,
                                               std::size_t parameters,
                                               const std::vector<std::string>& names);

}  // namespace pawl::postgres
