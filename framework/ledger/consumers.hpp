#pragma once

#include <string>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// The schema versions (migrations/NNNN_*.sql) that this program can serve. A range, so that a
/// fleet can be rolled forward before or after the database.
inline constexpr int kOldestSchema = 7;
inline constexpr int kNewestSchema = 7;

/// What one process must know of the database before it consumes.
struct Registration {
  ConsumerId consumer{};
  std::string database_id;  ///< travels in the metadata of offsets committed to Kafka
  std::string kafka_cluster_id;
};

/// The newest applied migration of pawl's own; 0 when there is none (or no rights to look).
int schema_version(postgres::Session& session, const std::string& schema);

/// Throws FatalError that says what to do when the schema is older or newer than this program
/// serves, or was made by a build from before 0.1.0.
/// `migrate`: the command that makes it newer.
void require_schema(postgres::Session& session, const std::string& schema,
                    const std::string& migrate);

/// Finds or makes the consumer's row. Throws FatalError when the row names another Kafka cluster:
/// the offsets stored under this name are not that cluster's.
Registration register_consumer(postgres::Session& session, const std::string& schema,
                               const std::string& cluster, const std::string& group,
                               const std::string& kafka_cluster_id);

/// Whether what register_consumer() found still holds, asked on every new connection: a database
/// that comes back may be another one, or may have given the consumer's number to somebody else.
/// A consumer that it has forgotten altogether is no change: first contact deals with that.
/// Through a pooler, which may lead to another database later, each transaction of this session
/// asks for the database once more from now on (PW019).
bool still_registered(postgres::Session& session, const std::string& schema,
                      const std::string& cluster, const std::string& group,
                      const Registration& registration);

}  // namespace pawl::ledger
