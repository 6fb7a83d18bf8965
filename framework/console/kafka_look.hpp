#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// What Kafka tells an operator's command about partitions.
struct KafkaLook {
  std::map<std::string, std::int32_t> topics;  ///< those that exist, with their partitions
  std::map<std::string, std::string> refused;  ///< those that Kafka refuses to describe, and why
  std::map<TopicPartition, kafka::LogRange> ranges;
  std::string problem;  ///< why Kafka could not be asked; the others are then not complete

  [[nodiscard]] std::optional<std::int64_t> end_of(const TopicPartition& partition) const;
};

/// Asks for the logs of `partitions`, and of all partitions of `whole_topics`. Makes the client
/// when there is none. Waits for each answer up to kKafkaTimeout; throws nothing.
[[nodiscard]] KafkaLook look_at_kafka(const Options& options,
                                      std::unique_ptr<kafka::Client>& client,
                                      const std::vector<TopicPartition>& partitions,
                                      const std::vector<std::string>& whole_topics = {});

}  // namespace pawl::cli
