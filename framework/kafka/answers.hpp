#pragma once

#include <fmt/format.h>

#include <map>

#include "kafka/handles.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// The answer about one of the partitions that Kafka was asked about; throws KafkaError
/// (RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) where it gave none.
template <typename T>
const T& answered(const std::map<TopicPartition, T>& answers, const TopicPartition& partition) {
  const auto found = answers.find(partition);
  if (found != answers.end())
    return found->second;
  throw KafkaError(
      RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
      fmt::format("Kafka tells no offsets of {} [{}] now", partition.topic, partition.partition));
}

}  // namespace pawl::kafka
