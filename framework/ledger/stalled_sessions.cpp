#include "ledger/stalled_sessions.hpp"

#include <fmt/format.h>

#include <string_view>

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

// Only if all of it holds: it is the suspect's, it blocks us, and its process has left it idle in a
// transaction for longer than the bound; in the middle of a flight "idle" is an active session that
// waits to read from its client. A session that waits for a synchronous standby is committing:
// ending it would make an unreplicated commit visible. $1 who is blocked, $2 the bound.
postgres::Statement end_stalled(std::string_view whose) {
  return {"", fmt::format(R"sql(
  SELECT pg_terminate_backend(a.pid)
    FROM pg_stat_activity a
   WHERE {}
     AND a.pid = ANY (pg_blocking_pids($1::integer))
     AND (a.state IN ('idle in transaction', 'idle in transaction (aborted)')
          OR (a.state = 'active' AND a.wait_event = 'ClientRead'))
     AND a.state_change < clock_timestamp() - make_interval(secs => $2::bigint / 1000.0)
     AND a.wait_event IS DISTINCT FROM 'SyncRep'
)sql",
                          whose)};
}

postgres::Parameters blocked_for(std::int32_t blocked, std::chrono::milliseconds bound) {
  postgres::Parameters parameters;
  parameters.add_integer(blocked);
  parameters.add_integer(bound.count());
  return parameters;
}

const postgres::Statement kEndStalledSession =
    end_stalled("a.pid = $3::integer AND a.backend_start = $4::timestamptz");

// 'pawh' in ASCII: the class of these locks. An owner's name ends with a random number of 32 bits.
constexpr std::int32_t kHandClass = 1885435752;

const postgres::Statement kTellWhoseHand{"",
                                         R"sql(
  SELECT pg_advisory_lock_shared(1885435752, k.object), k.object
    FROM (SELECT ('x' || right($1::text, 8))::bit(32)::integer AS object) k
)sql"};

const postgres::Statement kEndStalledHand = end_stalled(R"sql(EXISTS (
           SELECT FROM pg_locks l
            WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted
              AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
              AND l.classid = 1885435752 AND l.objsubid = 2
              AND l.objid::bigint = ('x' || right($3::text, 8))::bit(32)::bigint))sql");

}  // namespace

bool end_stalled_hand(postgres::Session& session, const std::string& owner, std::int32_t blocked,
                      std::chrono::milliseconds bound) {
  auto parameters = blocked_for(blocked, bound);
  parameters.add_text(owner);
  const auto ended = session.exec(kEndStalledHand, parameters);
  return PQntuples(ended.get()) > 0;
}

void tell_whose_hand(postgres::Session& session, const std::string& owner) {
  postgres::Parameters parameters;
  parameters.add_text(owner);
  const auto taken = session.exec(kTellWhoseHand, parameters);
  session.keep_lock(kHandClass, static_cast<std::int32_t>(integer(taken.get(), 0, 1)));
}

bool end_stalled_session(postgres::Session& session, const postgres::Backend& suspect,
                         std::int32_t blocked, std::chrono::milliseconds bound) {
  auto parameters = blocked_for(blocked, bound);
  parameters.add_integer(suspect.pid);
  parameters.add_text(suspect.backend_start);
  const auto ended = session.exec(kEndStalledSession, parameters);
  return PQntuples(ended.get()) > 0;
}

}  // namespace pawl::ledger
