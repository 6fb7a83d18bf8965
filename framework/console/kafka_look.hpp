#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "ledger/register_view.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// What Kafka tells an operator's command about partitions.
struct KafkaLook {
  std::map<std::string, kafka::TopicDescription> topics;  ///< those that exist
  std::map<std::string, std::string> refused;  ///< those that Kafka refuses to describe, and why
  std::map<TopicPartition, kafka::LogRange> ranges;
  /// Where logs ended some time ago: of those that look_back() was asked for.
  std::map<TopicPartition, std::int64_t> ends_before;
  /// The handlers' topics, where they were asked for: those that are named, and those that there
  /// are for patterns.
  std::vector<std::string> handled;
  /// Of those that patterns mean: meant by more than one, which these are; nobody handles them.
  std::map<std::string, std::vector<std::string>> ambiguous;
  std::string problem;  ///< why Kafka could not be asked; the others are then not complete

  [[nodiscard]] std::optional<std::int64_t> end_of(const TopicPartition& partition) const;
  [[nodiscard]] std::optional<std::int64_t> end_before(const TopicPartition& partition) const;
};

/// Asks for the logs of `partitions`; with `handled` also of all partitions of the handlers'
/// topics. Makes the client when there is none. Waits for each answer up to kKafkaTimeout; throws
/// nothing.
[[nodiscard]] KafkaLook look_at_kafka(const Options& options,
                                      std::unique_ptr<kafka::Client>& client,
                                      const std::vector<TopicPartition>& partitions,
                                      bool handled = false);

/// Also where the logs of those `rows` ended kStalledAfter ago that may be stalled and have a lag:
/// of a partition that was idle the register cannot tell whether its messages are new. Throws
/// nothing.
void look_back(KafkaLook& look, const kafka::Client* client,
               const std::vector<const ledger::RegisterRow*>& rows);

}  // namespace pawl::cli
