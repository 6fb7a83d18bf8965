#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// What stands beside each offset that pawl commits to Kafka: which database has its row.
[[nodiscard]] std::string commit_metadata(const std::string& database_id);

/// An offset that pawl has committed to Kafka.
struct CommittedByPawl {
  TopicPartition partition;
  std::int64_t next = 0;  ///< the first offset that was not processed
  std::string database_id;
};

/// Of partitions that have no row in this database, so that their rows are in another one, or lost.
/// The first that there is; nullopt: pawl has committed none. Throws kafka::KafkaError.
[[nodiscard]] std::optional<CommittedByPawl> committed_by_pawl(
    const kafka::Client& client, const std::vector<TopicPartition>& partitions,
    std::chrono::milliseconds timeout);

}  // namespace pawl::engine
