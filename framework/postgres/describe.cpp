#include "postgres/describe.hpp"

#include <fmt/format.h>

namespace pawl::postgres {
namespace {

constexpr const char* kName = "pawl_describe";

Result must(PGresult* answer) {
  Result result(answer);
  const auto status = PQresultStatus(answer);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw Error::from(answer, {});
  return result;
}

void run(Session& session, const std::string& sql) {
  (void)must(PQexec(session.raw(), sql.c_str()));
}

/// Rights are looked at when execution starts, which EXPLAIN does and then stops. The generic plan
/// keeps the parameters as such: a strict function of NULL would be folded away with its rights.
void explain(Session& session, std::size_t parameters) {
  run(session, "SET LOCAL plan_cache_mode = force_generic_plan");
  std::string nulls;
  for (std::size_t i = 0; i < parameters; ++i)
    nulls += i == 0 ? "NULL" : ", NULL";
  run(session, fmt::format("EXPLAIN EXECUTE {}{}", kName,
                           parameters == 0 ? "" : fmt::format("({})", nulls)));
}

/// Of class 42 are mistakes in the statement, and rights that are missing. All others depend on the
/// values, and those here are NULL: Citus, for one, wants a value for the distribution column.
bool is_about_values(const Error& error) {
  return !error.sqlstate().starts_with("42");
}

}  // namespace

bool some_table_is_locked(Session& session) {
  static const Statement ask{"", R"sql(
  SELECT FROM pg_catalog.pg_locks
   WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND granted
     AND database = (SELECT oid FROM pg_catalog.pg_database
                      WHERE datname = pg_catalog.current_database())
   LIMIT 1
)sql"};
  return PQntuples(session.exec(ask).get()) > 0;
}

Description describe(Session& session, const std::string& sql,
                     std::optional<std::size_t> parameters) {
  Description description;
  bool prepared = false;
  bool understood = false;
  run(session, "BEGIN");
  run(session, "SAVEPOINT before_describe");
  try {
    (void)must(PQprepare(session.raw(), kName, sql.c_str(), 0, nullptr));
    prepared = true;
    const auto described = must(PQdescribePrepared(session.raw(), kName));
    description.columns = PQnfields(described.get());
    description.types = types_of_described(session, described.get());
    const auto counted = static_cast<std::size_t>(PQnparams(described.get()));
    if (parameters && counted != *parameters) {
      description.problem = fmt::format(
          "PostgreSQL counts {} parameters, but the configuration has {}", counted, *parameters);
    } else {
      understood = true;
      explain(session, counted);
    }
  } catch (const Error& error) {
    if (!session.alive())
      throw;
    auto& found =
        understood && is_about_values(error) ? description.not_planned : description.problem;
    found = fmt::format("{} (SQLSTATE {})", error.what(), error.sqlstate());
    run(session, "ROLLBACK TO SAVEPOINT before_describe");
  }
  // Prepared statements outlive transactions.
  if (prepared)
    run(session, fmt::format("DEALLOCATE {}", kName));
  run(session, "ROLLBACK");
  return description;
}

}  // namespace pawl::postgres
