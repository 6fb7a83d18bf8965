#include "ledger/stalled_sessions.hpp"

namespace pawl::ledger {
namespace {

// Only if all of it holds: it is the suspect's, it blocks us, and its process has left it idle in a
// transaction for longer than the bound; in the middle of a flight "idle" is an active session that
// waits to read from its client. A session that waits for a synchronous standby is committing:
// ending it would make an unreplicated commit visible.
const postgres::Statement kEndStalledSession{"",
                                             R"sql(
  SELECT pg_terminate_backend(a.pid)
    FROM pg_stat_activity a
   WHERE a.pid = $1::integer
     AND a.backend_start = $2::timestamptz
     AND a.pid = ANY (pg_blocking_pids($3::integer))
     AND (a.state IN ('idle in transaction', 'idle in transaction (aborted)')
          OR (a.state = 'active' AND a.wait_event = 'ClientRead'))
     AND a.state_change < clock_timestamp() - make_interval(secs => $4::bigint / 1000.0)
     AND a.wait_event IS DISTINCT FROM 'SyncRep'
)sql"};

}  // namespace

bool end_stalled_session(postgres::Session& session, const postgres::Backend& suspect,
                         std::int32_t blocked, std::chrono::milliseconds bound) {
  postgres::Parameters parameters;
  parameters.add_integer(suspect.pid);
  parameters.add_text(suspect.backend_start);
  parameters.add_integer(blocked);
  parameters.add_integer(bound.count());
  const auto ended = session.exec(kEndStalledSession, parameters);
  return PQntuples(ended.get()) > 0;
}

}  // namespace pawl::ledger
