#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/session.hpp"

namespace pawl::ledger {

/// A consumer that the database has met.
struct ConsumerView {
  ConsumerId id{};
  std::string cluster;
  std::string group;
  std::int64_t partitions = 0;      ///< in the register
  std::vector<std::string> live;    ///< its processes
  std::string updated;              ///< RFC 3339, UTC: its last message or change; empty: none
  std::vector<std::string> scopes;  ///< whose keys its partitions hold back
  std::int64_t letters = 0;         ///< dead letters that wait for somebody
};

/// All of this database, by cluster and group.
[[nodiscard]] std::vector<ConsumerView> known_consumers(postgres::Session& session,
                                                        const std::string& schema);

/// What was removed.
struct Forgotten {
  std::string live;  ///< processes that live: nothing was removed then
  std::int64_t partitions = 0;
  std::int64_t scopes = 0;
  std::int64_t letters = 0;
  std::int64_t skipped = 0;
};

/// Removes, in one transaction, a consumer's register and its share in scopes of idempotency keys;
/// `letters`: its dead letters and records of skipped messages as well. What stays is its name,
/// with the history, and the keys. Refuses while one of its processes lives. Throws
/// postgres::Error, postgres::InDoubt.
[[nodiscard]] Forgotten forget_consumer(postgres::Session& session, const std::string& schema,
                                        ConsumerId consumer, const std::string& reason,
                                        bool letters);

}  // namespace pawl::ledger
