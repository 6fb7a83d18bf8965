#pragma once

#include <set>
#include <string>
#include <vector>

#include "ledger/types.hpp"
#include "pawl/condition.hpp"
#include "pawl/topic_partition.hpp"
#include "postgres/session.hpp"
#include "postgres/statement.hpp"

namespace pawl::ledger {

/// What a live process reports that its messages wait for.
struct ProcessCondition {
  std::string owner;  ///< as in the register
  Condition condition;
};

/// The same of several processes.
struct SharedCondition {
  Condition condition;  ///< since the earliest, with the messages of all
  std::vector<std::string> owners;
};
/// Ordered by `since`.
[[nodiscard]] std::vector<SharedCondition> shared_conditions(
    const std::vector<ProcessCondition>& conditions);
/// Partitions of which a message waits for a lock.
[[nodiscard]] std::set<TopicPartition> blocked_partitions(
    const std::vector<SharedCondition>& conditions);

/// pawl.process_conditions: what this process' messages wait for now. Written with its heartbeat in
/// pawl.processes, and as old as that at most. One instance serves all threads.
class ProcessConditions {
 public:
  ProcessConditions(const std::string& schema, ConsumerId consumer, std::string owner);

  /// Replaces those stored before. Throws postgres::Error, postgres::InDoubt.
  void tell(postgres::Session& session, const std::vector<Condition>& conditions) const;
  /// Removes them. Throws the same.
  void leave(postgres::Session& session) const;

 private:
  ConsumerId consumer_;
  std::string owner_;
  postgres::Statement tell_;
  postgres::Statement forget_;
  postgres::Statement leave_;
};

/// The conditions of all live processes. Throws postgres::Error.
[[nodiscard]] std::vector<ProcessCondition> live_conditions(postgres::Session& session,
                                                            const std::string& schema,
                                                            ConsumerId consumer);

}  // namespace pawl::ledger
