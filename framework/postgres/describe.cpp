#include "postgres/describe.hpp"

#include <fmt/format.h>

namespace pawl::postgres {
namespace {

constexpr const char* kName = "pawl_describe";

Result must(Session& session, const std::string& sql) {
  Result result(PQexec(session.raw(), sql.c_str()));
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw Error::from(result.get());
  return result;
}

void must_prepare(Session& session, const std::string& sql) {
  const Result prepared(PQprepare(session.raw(), kName, sql.c_str(), 0, nullptr));
  if (PQresultStatus(prepared.get()) != PGRES_COMMAND_OK)
    throw Error::from(prepared.get());
}

std::size_t parameters_of(Session& session) {
  const Result described(PQdescribePrepared(session.raw(), kName));
  if (PQresultStatus(described.get()) != PGRES_COMMAND_OK)
    throw Error::from(described.get());
  return static_cast<std::size_t>(PQnparams(described.get()));
}

/// Rights are looked at when execution starts, which EXPLAIN does and then stops. The generic plan
/// keeps the parameters as such: a strict function of NULL would be folded away with its rights.
void explain(Session& session, std::size_t parameters) {
  must(session, "SET LOCAL plan_cache_mode = force_generic_plan");
  std::string nulls;
  for (std::size_t i = 0; i < parameters; ++i)
    nulls += i == 0 ? "NULL" : ", NULL";
  must(session, fmt::format("EXPLAIN EXECUTE {}{}", kName,
                            parameters == 0 ? "" : fmt::format("({})", nulls)));
}

}  // namespace

std::optional<std::string> describe(Session& session, const std::string& sql,
                                    std::size_t parameters) {
  std::optional<std::string> problem;
  bool prepared = false;
  must(session, "BEGIN");
  must(session, "SAVEPOINT before_describe");
  try {
    must_prepare(session, sql);
    prepared = true;
    const auto counted = parameters_of(session);
    if (counted != parameters) {
      problem = fmt::format("PostgreSQL counts {} parameters, the configuration has {}", counted,
                            parameters);
    } else {
      explain(session, counted);
    }
  } catch (const Error& error) {
    if (!session.alive())
      throw;
    problem = fmt::format("{} (SQLSTATE {})", error.what(), error.sqlstate());
    must(session, "ROLLBACK TO SAVEPOINT before_describe");
  }
  // Prepared statements outlive transactions.
  if (prepared)
    must(session, fmt::format("DEALLOCATE {}", kName));
  must(session, "ROLLBACK");
  return problem;
}

int columns_of(Session& session, const std::string& sql) {
  must(session, "BEGIN");
  must_prepare(session, sql);
  const Result described(PQdescribePrepared(session.raw(), kName));
  if (PQresultStatus(described.get()) != PGRES_COMMAND_OK)
    throw Error::from(described.get());
  const int columns = PQnfields(described.get());
  must(session, fmt::format("DEALLOCATE {}", kName));
  must(session, "ROLLBACK");
  return columns;
}

}  // namespace pawl::postgres
