#pragma once

#include <optional>
#include <set>
#include <vector>

#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// Whether Kafka may leave out something that this process asks for: see Coverage.
[[nodiscard]] bool may_be_left_out(const KafkaOptions& options);

/// Finds partitions that a settled group leaves to nobody. Kafka answers a static member that comes
/// back (KIP-345) by the assignment of before, whatever topics it asks for now, and whatever
/// partitions they have gained.
class Coverage {
 public:
  /// One look at the group. `wanted`: the partitions of the topics that this process asks for;
  /// `assigned`: those that any member has; nullopt: the group is between two assignments. Returns
  /// what this look and the one before it miss, once each, for as long as it stays away.
  [[nodiscard]] std::vector<TopicPartition> look(
      const std::set<TopicPartition>& wanted,
      const std::optional<std::set<TopicPartition>>& assigned);

  /// The last look missed nothing that is still to be returned.
  [[nodiscard]] bool settled() const { return settled_; }

 private:
  bool settled_ = false;
  std::set<TopicPartition> missed_;    ///< in the last look
  std::set<TopicPartition> returned_;  ///< and missed ever since
};

}  // namespace pawl::engine
