#include "ledger/blocking_sessions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"

namespace pawl::ledger {
namespace {

// pg_blocking_pids holds up all who lock: it is asked only of one that waits for a lock.
constexpr const char* kBlocking = R"sql(
  SELECT b.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
         coalesce(to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''),
         coalesce((SELECT ROW(l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid,
                              l.transactionid, l.classid, l.objid, l.objsubid)::text
                     FROM pg_locks l
                    WHERE l.pid = $1::integer AND NOT l.granted
                    LIMIT 1), '')
    FROM (SELECT DISTINCT unnest(pg_blocking_pids(w.pid)) AS pid
            FROM pg_stat_get_activity($1::integer) w
           WHERE w.wait_event_type = 'Lock') b
    LEFT JOIN pg_stat_activity a ON a.pid = b.pid
   ORDER BY a.xact_start NULLS LAST, b.pid
   LIMIT 3
)sql";

// A lock of a prepared transaction has no pid.
constexpr const char* kStillBlock = R"sql(
  SELECT count(*)
    FROM pg_locks l
   WHERE coalesce(l.pid, 0) = ANY ($1::integer[])
     AND ROW(l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid,
             l.classid, l.objid, l.objsubid)::text = $2::text
)sql";

std::string name_of(const BlockingSession& session) {
  if (session.pid == 0)
    return "a prepared transaction (pg_prepared_xacts)";
  std::vector<std::string> parts;
  if (!session.user.empty())
    parts.push_back(fmt::format("user {}", session.user));
  if (!session.application.empty())
    parts.push_back(fmt::format("application \"{}\"", session.application));
  if (!session.state.empty())
    parts.push_back(session.state);
  if (!session.transaction_since.empty())
    parts.push_back(fmt::format("its transaction open since {}", session.transaction_since));
  return parts.empty() ? fmt::format("session {}", session.pid)
                       : fmt::format("session {} ({})", session.pid, fmt::join(parts, ", "));
}

}  // namespace

std::string text_of(const std::vector<BlockingSession>& sessions) {
  std::vector<std::string> names;
  for (const auto& session : sessions)
    names.push_back(name_of(session));
  if (names.empty())
    return "";
  return fmt::format("{} {} the lock", fmt::join(names, " and "),
                     names.size() == 1 ? "holds" : "hold");
}

std::vector<BlockingSession> blocking_sessions(postgres::Session& session, std::int32_t blocked) {
  postgres::Parameters parameters;
  parameters.add_integer(blocked);
  const auto found = session.exec({"", kBlocking}, parameters);
  const auto* rows = found.get();
  std::vector<BlockingSession> sessions;
  for (int row = 0; row < PQntuples(rows); ++row) {
    sessions.push_back({static_cast<std::int32_t>(integer(rows, row, 0)), text(rows, row, 1),
                        text(rows, row, 2), text(rows, row, 3), text(rows, row, 4),
                        text(rows, row, 5)});
  }
  return sessions;
}

bool still_block(postgres::Session& session, const std::vector<BlockingSession>& sessions) {
  // All block the same one, which waits for one lock at a time.
  if (sessions.empty() || sessions.front().lock.empty())
    return true;
  postgres::ArrayElements pids;
  for (const auto& one : sessions)
    pids.add_integer(one.pid);
  postgres::Parameters parameters;
  parameters.add_text(pids.array());
  parameters.add_text(sessions.front().lock);
  return integer(session.exec({"", kStillBlock}, parameters).get(), 0, 0) > 0;
}

}  // namespace pawl::ledger
