#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "postgres/session.hpp"

namespace pawl::postgres {

/// Has the server parse, analyse and plan a statement as a consumer would run it, without running
/// it: finds missing tables, columns and functions, types that do not fit, and rights that this
/// session's role lacks (not those that a function or a trigger needs inside). Returns what is
/// wrong, with its SQLSTATE; nullopt when nothing is. Throws Error when the connection is lost.
///
/// Leaves nothing behind on the session, through a pooler neither: all of it happens in one
/// transaction that is rolled back.
std::optional<std::string> describe(Session& session, const std::string& sql,
                                    std::size_t parameters);

/// How many columns a statement returns, which PostgreSQL is known to understand. Throws Error.
int columns_of(Session& session, const std::string& sql);

}  // namespace pawl::postgres
