#include "ledger/consumers.hpp"

#include <fmt/format.h>

#include "ledger/rows.hpp"
#include "pawl/errors.hpp"
#include "postgres/transaction.hpp"

namespace pawl::ledger {
namespace {

// 0001_core.sql: what builds from before 0.1.0 began with; their numbers mean other files.
constexpr const char* kAppliedSchema = R"sql(
  SELECT coalesce(max(version), 0),
         coalesce(bool_or(version = 1 AND file = '0001_core.sql'), false)
    FROM pawl.schema_migrations WHERE set_name = 'pawl'
)sql";

constexpr const char* kInsertConsumer = R"sql(
  INSERT INTO pawl.consumers (cluster, group_id, kafka_cluster_id)
  VALUES ($1, $2, $3) ON CONFLICT (cluster, group_id) DO NOTHING
)sql";

constexpr const char* kFindConsumer = R"sql(
  SELECT c.consumer_id, c.kafka_cluster_id, d.database_id
    FROM pawl.consumers c CROSS JOIN pawl.database_identity d
   WHERE c.cluster = $1 AND c.group_id = $2
)sql";

constexpr const char* kStillRegistered = R"sql(
  SELECT d.database_id = $1::uuid
         AND NOT EXISTS (SELECT FROM pawl.consumers c
                          WHERE (c.consumer_id = $2::integer)
                                <> (c.cluster = $3 AND c.group_id = $4))
    FROM pawl.database_identity d
)sql";

struct AppliedSchema {
  int version = 0;
  bool unreleased = false;
};

AppliedSchema applied_schema(postgres::Session& session, const std::string& schema) {
  const postgres::Statement statement{"", in_schema(kAppliedSchema, schema)};
  try {
    const auto result = session.exec(statement);
    return {static_cast<int>(integer(result.get(), 0, 0)), boolean(result.get(), 0, 1)};
  } catch (const postgres::Error& error) {
    // 3F000 no such schema, 42P01 no such table.
    if (error.sqlstate() == "3F000" || error.sqlstate() == "42P01")
      return {};
    throw;
  }
}

}  // namespace

int schema_version(postgres::Session& session, const std::string& schema) {
  return applied_schema(session, schema).version;
}

void require_schema(postgres::Session& session, const std::string& schema,
                    const std::string& migrate) {
  const char* encoding = PQparameterStatus(session.raw(), "server_encoding");
  if (encoding != nullptr && std::string_view(encoding) != "UTF8") {
    throw FatalError(fmt::format(
        "the encoding of the database is {}, but pawl requires UTF8. Create a database with "
        "`createdb -E UTF8 -T template0`",
        encoding));
  }
  const auto [version, unreleased] = applied_schema(session, schema);
  if (unreleased) {
    throw FatalError(fmt::format(
        "the schema \"{}\" was created by a build of pawl from before 0.1.0, which this program "
        "cannot use. Use that build, or create the schema again, which loses offsets, idempotency "
        "keys, and dead letters. This changes nothing and prints the command for that:\n  {}",
        schema, migrate));
  }
  if (version < kOldestSchema) {
    throw FatalError(fmt::format(
        "the database has schema version {} of pawl in schema \"{}\", but this program requires {} "
        "to {}. Run this command, with --database URL instead of --config if the role in "
        "postgres.url does not own the schema:\n  {}",
        version, schema, kOldestSchema, kNewestSchema, migrate));
  }
  if (version > kNewestSchema) {
    throw FatalError(
        fmt::format("the database has schema version {} of pawl in schema \"{}\", but this program "
                    "supports {} to {}. Run a newer version of this program",
                    version, schema, kOldestSchema, kNewestSchema));
  }
}

Registration register_consumer(postgres::Session& session, const std::string& schema,
                               const std::string& cluster, const std::string& group,
                               const std::string& kafka_cluster_id) {
  const postgres::Statement insert{"", in_schema(kInsertConsumer, schema)};
  const postgres::Statement find{"", in_schema(kFindConsumer, schema)};
  postgres::Parameters names;
  names.add_text(cluster);
  names.add_text(group);
  auto named = names;
  named.add_text(kafka_cluster_id);

  auto found = session.exec(find, names);
  if (PQntuples(found.get()) == 0) {
    postgres::run_transaction(session, {{&insert, std::move(named)}});
    found = session.exec(find, names);
  }
  if (PQntuples(found.get()) == 0) {
    throw FatalError(
        "pawl.database_identity is empty, so the schema is damaged. Restore its row from a backup");
  }
  const auto known = text(found.get(), 0, 1);
  if (known != kafka_cluster_id) {
    throw FatalError(fmt::format(
        "consumer {}/{} belongs to Kafka cluster {}, but kafka.bootstrap_servers leads to cluster "
        "{}. The stored offsets do not belong to that cluster. Fix bootstrap_servers, or give "
        "the other cluster its own name: kafka.cluster = \"...\"",
        cluster, group, known, kafka_cluster_id));
  }
  return {ConsumerId{static_cast<std::int32_t>(integer(found.get(), 0, 0))},
          text(found.get(), 0, 2), kafka_cluster_id};
}

bool still_registered(postgres::Session& session, const std::string& schema,
                      const std::string& cluster, const std::string& group,
                      const Registration& registration) {
  const postgres::Statement statement{"", in_schema(kStillRegistered, schema)};
  postgres::Parameters parameters;
  parameters.add_text(registration.database_id);
  parameters.add_integer(static_cast<std::int64_t>(registration.consumer));
  parameters.add_text(cluster);
  parameters.add_text(group);
  const auto result = session.exec(statement, parameters);
  if (PQntuples(result.get()) != 1 || !boolean(result.get(), 0, 0))
    return false;
  session.verify_in_each_transaction(
      in_schema(fmt::format("pawl.require_database({}::uuid)",
                            session.connection().quote(registration.database_id)),
                schema));
  return true;
}

}  // namespace pawl::ledger
