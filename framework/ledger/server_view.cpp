#include "ledger/server_view.hpp"

#include "ledger/rows.hpp"

namespace pawl::ledger {
namespace {

// A transaction id holds back as a snapshot does: a transaction that has written and idles has only
// that. VACUUM itself does not. Sessions in other databases matter to shared catalogs only; those
// without a database are standbys with hot_standby_feedback.
constexpr const char* kHolders = R"sql(
  SELECT * FROM (
    SELECT CASE a.backend_type WHEN 'walsender' THEN 'standby' ELSE 'session' END,
           a.pid::text, coalesce(a.usename, ''), coalesce(a.application_name, ''),
           coalesce(a.state, ''),
           greatest(age(a.backend_xmin), age(a.backend_xid))::bigint AS held,
           extract(epoch FROM clock_timestamp() - a.xact_start)::bigint AS since
      FROM pg_stat_activity a
     WHERE coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL
       AND a.pid <> pg_backend_pid()
       AND coalesce(a.datname, current_database()) = current_database()
       AND coalesce(a.backend_type, '') <> 'autovacuum worker'
    UNION ALL
    SELECT 'prepared transaction', p.gid, p.owner, '', '', age(p.transaction)::bigint,
           extract(epoch FROM clock_timestamp() - p.prepared)::bigint
      FROM pg_prepared_xacts p
     WHERE p.database = current_database()
    UNION ALL
    SELECT 'replication slot', s.slot_name, '', '',
           CASE WHEN s.active THEN 'active' ELSE 'inactive' END, age(s.xmin)::bigint, NULL
      FROM pg_replication_slots s
     WHERE s.xmin IS NOT NULL
  ) AS holders
   ORDER BY held DESC, since DESC NULLS LAST
   LIMIT 5
)sql";

constexpr const char* kServer = R"sql(
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
         pg_has_role('pg_read_all_stats', 'USAGE'),
         (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pawl ' || $1::text),
         (SELECT count(*) FROM pg_stat_activity
           WHERE application_name = 'pawl' OR application_name LIKE 'pawl %'),
         (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database),
         current_setting('max_connections')::bigint, quote_ident(current_user)
)sql";

// A key has a row as soon as its first message is set aside, until its next one arrives: whether
// messages are parked, only they show.
constexpr const char* kParkedKeys = R"sql(
  SELECT count(*), count(*) FILTER (WHERE p.is_left)
    FROM (SELECT NOT EXISTS (SELECT FROM pawl.dead_letters f
                              WHERE f.consumer_id = k.consumer_id AND f.topic = k.topic
                                AND f.record_key_hash = k.record_key_hash
                                AND f.status IN ('dead', 'parked')
                                AND (f.status = 'dead' OR f.due_at IS NOT NULL)) AS is_left
            FROM pawl.parked_keys k WHERE k.consumer_id = $1::integer
             AND EXISTS (SELECT FROM pawl.dead_letters d
                          WHERE d.consumer_id = k.consumer_id AND d.topic = k.topic
                            AND d.record_key_hash = k.record_key_hash
                            AND d.status = 'parked')) p
)sql";

std::vector<HorizonHolder> read_holders(postgres::Session& session) {
  const auto found = session.exec({"", kHolders});
  const auto* rows = found.get();
  std::vector<HorizonHolder> holders;
  for (int i = 0; i < PQntuples(rows); ++i) {
    holders.push_back({text(rows, i, 0), text(rows, i, 1), text(rows, i, 2), text(rows, i, 3),
                       text(rows, i, 4), integer(rows, i, 5), optional_integer(rows, i, 6)});
  }
  return holders;
}

}  // namespace

ServerView look_at_server(postgres::Session& session, const std::string& schema,
                          std::optional<ConsumerId> consumer, const std::string& group) {
  ServerView view;
  postgres::Parameters names;
  names.add_text(group);
  const auto server = session.exec({"", kServer}, names);
  view.now_ms = integer(server.get(), 0, 0);
  view.sees_all = boolean(server.get(), 0, 1);
  view.consumer_connections = integer(server.get(), 0, 2);
  view.pawl_connections = integer(server.get(), 0, 3);
  view.connections = integer(server.get(), 0, 4);
  view.max_connections = integer(server.get(), 0, 5);
  view.role = text(server.get(), 0, 6);
  view.holders = read_holders(session);
  if (consumer) {
    const postgres::Statement ask{"", in_schema(kParkedKeys, schema)};
    postgres::Parameters who;
    who.add_integer(static_cast<std::int64_t>(*consumer));
    const auto parked = session.exec(ask, who);
    view.parked_keys = integer(parked.get(), 0, 0);
    view.left_parked_keys = integer(parked.get(), 0, 1);
  }
  return view;
}

}  // namespace pawl::ledger
