#include "ledger/blocking_sessions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ledger/rows.hpp"
#include "postgres/array_elements.hpp"

namespace pawl::ledger {
namespace {

// Sessions that wait for one row form a queue, in which pg_blocking_pids names other sessions that
// wait. Only the session at its head, which does not wait itself, can end the wait. Of a statement
// only a known command is read, because the rest may contain an application's values.
// pg_blocking_pids delays all sessions that lock, so it is called only for sessions that wait, or
// whose state this role may not see.
constexpr const char* kBlocking = R"sql(
  WITH RECURSIVE chain (pid, waiting, depth) AS (
    SELECT b.pid, w.pid, 1
      FROM pg_stat_get_activity($1::integer) w
     CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid)
     WHERE w.wait_event_type = 'Lock'
     UNION
    SELECT b.pid, w.pid, c.depth + 1
      FROM chain c
     CROSS JOIN LATERAL pg_stat_get_activity(c.pid) w
     CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid)
     WHERE c.depth < 3 AND c.pid <> 0 AND (w.wait_event_type = 'Lock' OR w.state IS NULL)
  ), found AS (
    SELECT DISTINCT ON (c.pid) c.pid, c.waiting,
           EXISTS (SELECT FROM chain w WHERE w.waiting = c.pid)
             OR EXISTS (SELECT FROM pg_stat_get_activity(c.pid) w
                         WHERE w.wait_event_type = 'Lock') AS waits
      FROM chain c
     ORDER BY c.pid, c.depth
  )
  SELECT b.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
         coalesce(to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), ''),
         coalesce((SELECT ROW(l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid,
                              l.transactionid, l.classid, l.objid, l.objsubid)::text
                     FROM pg_locks l
                    WHERE l.pid = b.waiting AND NOT l.granted
                    LIMIT 1), ''),
         coalesce(substring(upper(left(a.query, 200)) FROM
           '^\s*(ALTER|ANALYZE|CLUSTER|COPY|CREATE|DELETE|DROP|INSERT|LOCK|MERGE|REFRESH|REINDEX|'
           'SELECT|TRUNCATE|UPDATE|VACUUM|WITH)\M'), '')
    FROM found b
    LEFT JOIN pg_stat_activity a ON a.pid = b.pid
   WHERE NOT b.waits OR NOT EXISTS (SELECT FROM found f WHERE NOT f.waits)
   ORDER BY a.xact_start NULLS LAST, b.pid
   LIMIT 3
)sql";

// A lock of a prepared transaction has no pid.
constexpr const char* kStillBlock = R"sql(
  SELECT count(*)
    FROM unnest($1::integer[], $2::text[]) AS b (pid, lock)
    JOIN pg_locks l
      ON coalesce(l.pid, 0) = b.pid
     AND ROW(l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid,
             l.classid, l.objid, l.objsubid)::text = b.lock
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
  if (!session.command.empty()) {
    parts.push_back(fmt::format("{} {}", session.state == "active" ? "statement" : "last statement",
                                session.command));
  }
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

std::string termination_sql(std::int32_t pid) {
  return fmt::format("SELECT pg_terminate_backend({})", pid);
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
                        text(rows, row, 5), text(rows, row, 6)});
  }
  return sessions;
}

bool still_block(postgres::Session& session, const std::vector<BlockingSession>& sessions) {
  if (sessions.empty() ||
      std::ranges::any_of(sessions, [](const auto& one) { return one.lock.empty(); }))
    return true;
  postgres::ArrayElements pids;
  postgres::ArrayElements locks;
  for (const auto& one : sessions) {
    pids.add_integer(one.pid);
    locks.add_text(one.lock);
  }
  postgres::Parameters parameters;
  parameters.add_text(pids.array());
  parameters.add_text(locks.array());
  return integer(session.exec({"", kStillBlock}, parameters).get(), 0, 0) > 0;
}

}  // namespace pawl::ledger
