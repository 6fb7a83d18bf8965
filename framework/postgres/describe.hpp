#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "postgres/parameter_types.hpp"
#include "postgres/session.hpp"

namespace pawl::postgres {

/// What the server makes of a statement.
struct Description {
  std::optional<std::string> problem;  ///< what is wrong, with its SQLSTATE; nullopt: nothing
  /// Why it could not be planned: it was understood, but this server refuses NULL as a parameter.
  std::optional<std::string> not_planned;
  int columns = 0;            ///< that it returns, where it was understood
  ParameterTypes types = {};  ///< of its parameters, where it was understood
};

/// Has the server parse, analyse and plan a statement as a consumer would run it, without running
/// it: finds missing tables, columns and functions, types that do not fit, and rights that this
/// session's role lacks (not those that a function or a trigger needs inside). Throws Error when
/// the connection is lost. `parameters`: how many it must have; nullopt: whatever PostgreSQL
/// counts.
///
/// Leaves nothing behind on the session, through a pooler neither: all of it happens in one
/// transaction that is rolled back.
Description describe(Session& session, const std::string& sql,
                     std::optional<std::size_t> parameters);

/// Whether another transaction holds an AccessExclusiveLock on a table of this database, as ALTER
/// TABLE does. Parsing a statement would wait for such a lock; this does not. Throws Error.
[[nodiscard]] bool some_table_is_locked(Session& session);

}  // namespace pawl::postgres
