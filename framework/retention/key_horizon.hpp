#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "retention/store/retention.hpp"

namespace pawl::cli {

/// How far a topic's partitions can be set back so that what comes again is recognised by its keys:
/// not beyond the time up to which retention has removed them.
class KeyHorizon {
 public:
  KeyHorizon() = default;
  explicit KeyHorizon(std::optional<ledger::Instant> pruned_to) : pruned_to_(pruned_to) {}

  /// Finds the first records that are younger. Throws kafka::KafkaError, also where Kafka does not
  /// tell it of one of them: nobody knows then whether that may go back.
  void ask(const kafka::Client& client, const std::vector<TopicPartition>& partitions);

  /// With what Kafka answered about them, where it was asked already.
  void learn(const std::vector<TopicPartition>& partitions,
             const std::map<TopicPartition, std::int64_t>& answers);

  /// Keys of messages from before may be gone; nullopt: none are.
  [[nodiscard]] const std::optional<ledger::Instant>& pruned_to() const { return pruned_to_; }
  /// Why a partition must not go back to `next` without force; nullopt: it may.
  [[nodiscard]] std::optional<std::string> refusal(const TopicPartition& partition,
                                                   std::int64_t next) const;

 private:
  std::optional<ledger::Instant> pruned_to_;
  std::map<TopicPartition, std::int64_t> recognised_from_;
};

}  // namespace pawl::cli
