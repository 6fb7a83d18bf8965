#include "postgres/remote_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "postgres/array_elements.hpp"
#include "postgres/describe.hpp"
#include "postgres/error.hpp"

namespace pawl::postgres {
namespace {

constexpr const char* kName = "pawl_written_tables";

// $1: the plan as EXPLAIN prints it, or NULL. $2: names of tables. {}: the catalog of Citus, or a
// relation without rows. The names of a plan are compared, not cast: a role may write through a
// view to a table whose schema it may not use. A plan names a partitioned table and its partitions:
// the table is what the statement writes to.
constexpr const char* kRemoteTables = R"sql(
  WITH RECURSIVE targets AS (
    SELECT n.node ->> 'Schema' AS schema, n.node ->> 'Relation Name' AS name
      FROM jsonb_path_query($1::jsonb, '$.** ? (@."Node Type" == "ModifyTable")') n (node)
    UNION
    SELECT n.node ->> 'Schema', n.node ->> 'Relation Name'
      FROM jsonb_path_query($1::jsonb, '$.**."Target Tables"[*]') n (node)),
  tree (written, relation) AS (
    SELECT w.oid, w.oid
      FROM (SELECT c.oid
              FROM targets t
              JOIN pg_catalog.pg_namespace s ON s.nspname = t.schema
              JOIN pg_catalog.pg_class c ON c.relnamespace = s.oid AND c.relname = t.name
             UNION
            SELECT pg_catalog.to_regclass(n.name)::oid
              FROM unnest($2::text[]) n (name)) w
     WHERE w.oid IS NOT NULL
    UNION
    SELECT t.written, i.inhrelid
      FROM tree t
      JOIN pg_catalog.pg_class p ON p.oid = t.relation AND p.relkind = 'p'
      JOIN pg_catalog.pg_inherits i ON i.inhparent = t.relation)
  SELECT DISTINCT ON (t.written) ws.nspname || '.' || w.relname,
         CASE WHEN citus.logicalrelid IS NOT NULL THEN 'is a table of Citus'
              WHEN t.relation = t.written
              THEN format('is a foreign table of the server "%s"', server.srvname)
              ELSE format('has the partition %s.%s, a foreign table of the server "%s"',
                          rs.nspname, r.relname, server.srvname) END
    FROM tree t
    JOIN pg_catalog.pg_class w ON w.oid = t.written
    JOIN pg_catalog.pg_namespace ws ON ws.oid = w.relnamespace
    JOIN pg_catalog.pg_class r ON r.oid = t.relation
    JOIN pg_catalog.pg_namespace rs ON rs.oid = r.relnamespace
    LEFT JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = t.relation
    LEFT JOIN pg_catalog.pg_foreign_server server ON server.oid = f.ftserver
    LEFT JOIN {} citus ON citus.logicalrelid = t.relation
   WHERE (r.relkind = 'f' OR citus.logicalrelid IS NOT NULL)
     AND NOT EXISTS (SELECT FROM tree above
                      WHERE above.relation = t.written AND above.written <> t.written)
   ORDER BY t.written, t.relation
)sql";

constexpr const char* kNoCitus = "(SELECT NULL::regclass AS logicalrelid WHERE false)";

Result run(Session& session, const std::string& sql) {
  return session.exec(Statement{"", sql});
}

/// What `step` returns; nullopt where the server refuses it, with the transaction as it was.
template <typename Step>
auto attempt(Session& session, Step step) -> std::optional<decltype(step())> {
  run(session, "SAVEPOINT before_attempt");
  try {
    return step();
  } catch (const Error&) {
    if (!session.alive())
      throw;
    run(session, "ROLLBACK TO SAVEPOINT before_attempt");
    return std::nullopt;
  }
}

/// As describe.cpp: the generic plan keeps the parameters as such.
std::string plan(Session& session, std::size_t parameters) {
  run(session, "SET LOCAL plan_cache_mode = force_generic_plan");
  const std::vector<std::string> nulls(parameters, "NULL");
  const auto explained =
      run(session, fmt::format("EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {}{}", kName,
                               parameters == 0 ? "" : fmt::format("({})", fmt::join(nulls, ", "))));
  return PQntuples(explained.get()) == 1 ? PQgetvalue(explained.get(), 0, 0) : "[]";
}

/// Citus places it in pg_catalog.
std::string citus_catalog(Session& session) {
  const auto found = run(session,
                         "SELECT coalesce(to_regclass('pg_catalog.pg_dist_partition'), "
                         "to_regclass('pg_dist_partition'))");
  return PQgetisnull(found.get(), 0, 0) != 0 ? kNoCitus : PQgetvalue(found.get(), 0, 0);
}

std::vector<RemoteTable> look_up(Session& session, const std::string& citus,
                                 const std::optional<std::string>& plan,
                                 const std::vector<std::string>& names) {
  const auto sql = fmt::format(fmt::runtime(kRemoteTables), citus);
  ArrayElements targets;
  for (const auto& name : names)
    targets.add_text(name);
  Parameters parameters;
  parameters.add_optional_text(plan);
  parameters.add_text(targets.array());
  const auto found = session.exec(Statement{"", sql}, parameters);
  std::vector<RemoteTable> tables;
  for (int row = 0; row < PQntuples(found.get()); ++row)
    tables.push_back({PQgetvalue(found.get(), row, 0), PQgetvalue(found.get(), row, 1)});
  return tables;
}

}  // namespace

std::vector<RemoteTable> written_remote_tables(Session& session, const std::string& sql,
                                               std::size_t parameters,
                                               const std::vector<std::string>& names) {
  // A table that somebody changes right now is not waited for: the names in the text tell enough.
  const bool locked = some_table_is_locked(session);
  run(session, "BEGIN");
  run(session, "SET LOCAL lock_timeout = 1");
  // By SQL: a pooler gives other names to what the protocol prepares.
  const auto prepare = fmt::format("PREPARE {} AS {}", kName, sql);
  const auto prepared =
      locked ? std::nullopt : attempt(session, [&] { return run(session, prepare); });
  const auto planned = prepared ? attempt(session, [&] { return plan(session, parameters); })
                                : std::optional<std::string>{};
  const auto citus = citus_catalog(session);
  auto tables = attempt(session, [&] { return look_up(session, citus, planned, names); });
  std::optional<Error> refused;
  try {
    // A name in a schema that the role may not use is an error.
    if (!tables)
      tables = look_up(session, citus, planned, {});
  } catch (const Error& error) {
    if (!session.alive())
      throw;
    refused = error;
    run(session, "ROLLBACK TO SAVEPOINT before_attempt");
  }
  // Prepared statements outlive transactions, which a pooler may end with the connection.
  if (prepared)
    run(session, fmt::format("DEALLOCATE {}", kName));
  run(session, "ROLLBACK");
  // What is not known is not taken for harmless.
  if (refused)
    throw *refused;
  return *std::move(tables);
}

}  // namespace pawl::postgres
