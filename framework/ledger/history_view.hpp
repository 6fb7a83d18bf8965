#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "postgres/request.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// A row of pawl.offset_history.
struct HistoryRow {
  std::int64_t id = 0;
  TopicPartition partition;
  std::string happened_at;  ///< RFC 3339, UTC
  std::string action;
  /// The next offsets before and after a change of a partition. Of an action on one message: its
  /// offset, twice.
  std::optional<std::int64_t> from;
  std::optional<std::int64_t> to;
  std::string reason;
  std::string actor;  ///< the role of the session
};

/// The newest first, at most `limit`, with numbers below `before`; 0: from the newest on. `topic`
/// empty: of all.
std::vector<HistoryRow> read_history(postgres::Session& session, const std::string& schema,
                                     ConsumerId consumer, const std::string& topic,
                                     std::optional<std::int32_t> partition, std::int64_t before,
                                     std::int64_t limit);

/// What an operator does to a message that is no change of the register, as a statement of a
/// transaction.
class HistoryEntry {
 public:
  HistoryEntry(const std::string& schema, ConsumerId consumer);

  void record(postgres::Request& request, const TopicPartition& partition, std::int64_t offset,
              const std::string& action, const std::string& reason) const;

 private:
  ConsumerId consumer_;
  postgres::Statement record_;
};

/// The same in a transaction of its own. Throws postgres::Error, postgres::InDoubt.
void record_action(postgres::Session& session, const std::string& schema, ConsumerId consumer,
                   const TopicPartition& partition, std::int64_t offset, const std::string& action,
                   const std::string& reason);

}  // namespace pawl::ledger
