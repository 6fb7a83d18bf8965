#pragma once

#include <string_view>

namespace pawl::postgres {

/// What decides how the statements of a session's next transaction are understood, as whom they
/// run, and for how long: an SQL expression. A handler may have changed it for the whole session
/// (PostgreSQL manual, SET). transaction_timeout is of PostgreSQL 17. statement_timeout, which pawl
/// itself changes, stands last.
inline constexpr std::string_view kSessionState =
    "concat_ws('|', current_setting('search_path'), current_setting('session_authorization'),"
    " current_setting('role'), current_setting('lock_timeout'),"
    " current_setting('idle_in_transaction_session_timeout'),"
    " current_setting('transaction_timeout', true), current_setting('session_replication_role'),"
    " current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'),"
    " current_setting('statement_timeout'))";

/// The same settings, each with its value: a query. The session's user comes before its role, since
/// to change the former sets the latter (SET SESSION AUTHORIZATION).
inline constexpr std::string_view kSessionSettings = R"sql(
  SELECT name, current_setting(name, true)
    FROM unnest(ARRAY['search_path', 'session_authorization', 'role', 'lock_timeout',
                      'statement_timeout', 'idle_in_transaction_session_timeout',
                      'transaction_timeout', 'session_replication_role', 'TimeZone', 'DateStyle',
                      'IntervalStyle']) AS s (name)
)sql";

}  // namespace pawl::postgres
