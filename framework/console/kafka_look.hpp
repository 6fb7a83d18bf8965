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
  /// The handlers' topics, where they were asked for: those that are named, and those that there
  /// are for patterns.
  std::vector<std::string> handled;
  /// Of those that patterns mean: meant by more than one, which these are; nobody handles them.
  std::map<std::string, std::vector<std::string>> ambiguous;
  std::string problem;  ///< why Kafka could not be asked; the others are then not complete

  [[nodiscard]] std::optional<std::int64_t> end_of(const TopicPartition& partition) const;
};

/// Asks for the logs of `partitions`; with `handled` also of all partitions of the handlers'
/// topics. Makes the client when there is none. Waits for each answer up to kKafkaTimeout; throws
/// nothing.
[[nodiscard]] KafkaLook look_at_kafka(const Options& options,
                                      std::unique_ptr<kafka::Client>& client,
                                      const std::vector<TopicPartition>& partitions,
                                      bool handled = false);

}  // namespace pawl::cli
