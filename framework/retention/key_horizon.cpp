#include "retention/key_horizon.hpp"

#include <fmt/format.h>

#include "console/connections.hpp"
#include "kafka/answers.hpp"
#include "message/partition_name.hpp"

namespace pawl::cli {

void KeyHorizon::ask(const kafka::Client& client, const std::vector<TopicPartition>& partitions) {
  if (pruned_to_ && !partitions.empty()) {
    learn(partitions, client.offsets_at(partitions, *pruned_to_, kKafkaTimeout));
  }
}

void KeyHorizon::learn(const std::vector<TopicPartition>& partitions,
                       const std::map<TopicPartition, std::int64_t>& answers) {
  for (const auto& partition : partitions)
    recognised_from_[partition] = kafka::answered(answers, partition);
}

std::optional<std::string> KeyHorizon::refusal(const TopicPartition& partition,
                                               std::int64_t next) const {
  const auto from = recognised_from_.find(partition);
  if (from == recognised_from_.end() || next >= from->second)
    return std::nullopt;
  return fmt::format(
      "{} cannot go back to offset {}: messages before offset {} are older than {}, and "
      "retention has removed older keys. pawl would apply these messages a second time. Choose an "
      "offset of {} or later. If a repetition is acceptable, use --force",
      message::name_of(partition), next, from->second, ledger::to_string(*pruned_to_),
      from->second);
}

}  // namespace pawl::cli
