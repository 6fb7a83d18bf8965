#pragma once

#include <array>
#include <string>
#include <string_view>

namespace pawl::postgres {

/// The settings that decide how the statements of a session's next transaction are understood, as
/// whom they run, and for how long. A handler may have changed one for the whole session
/// (PostgreSQL manual, SET). The session's user comes before its role, because SET SESSION
/// AUTHORIZATION also sets the role. transaction_timeout exists since PostgreSQL 17.
/// statement_timeout, which pawl itself changes, comes last.
inline constexpr std::array<std::string_view, 12> kVerifiedSettings{
    "search_path",
    "client_encoding",
    "session_authorization",
    "role",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
    "session_replication_role",
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "statement_timeout"};

/// An SQL expression: the values of these settings, joined by '|', without those that the server
/// does not know.
[[nodiscard]] const std::string& session_state();

}  // namespace pawl::postgres
