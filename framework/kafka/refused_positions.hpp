#pragma once

#include <chrono>
#include <map>
#include <string>

#include "kafka/client.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// Which of these positions Kafka refuses since its logs do not hold the record in front of them
/// (any more), and why. Asks as a consumer would that goes on there, with the leader epoch
/// (KIP-320), but joins no group and commits nothing. For a client that nobody else uses meanwhile.
/// Throws KafkaError: also when Kafka has not answered for one of them within `patience`.
std::map<TopicPartition, std::string> refused_positions(
    const Client& client, const std::map<TopicPartition, LogPosition>& positions,
    std::chrono::milliseconds patience);

}  // namespace pawl::kafka
