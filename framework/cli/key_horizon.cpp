#include "cli/key_horizon.hpp"

#include <fmt/format.h>

#include "cli/connections.hpp"

namespace pawl::cli {

void KeyHorizon::ask(const kafka::Client& client, const std::vector<TopicPartition>& partitions) {
  if (pruned_to_ && !partitions.empty()) {
    recognised_from_ =
        client.offsets_at(partitions, pruned_to_->time_since_epoch().count(), kKafkaTimeout);
  }
}

std::optional<std::string> KeyHorizon::refusal(const TopicPartition& partition,
                                               std::int64_t next) const {
  const auto from = recognised_from_.find(partition);
  if (from == recognised_from_.end() || next >= from->second)
    return std::nullopt;
  return fmt::format(
      "{} [{}] cannot go back to {}: messages before offset {} are older than {}, and keys of "
      "before "
      "were removed (retention.keys). They would not be recognised, and what they did would be "
      "done "
      "a second time. Give an offset from {} on; or --force, if their effects may be repeated or "
      "were taken back",
      partition.topic, partition.partition, next, from->second, ledger::to_string(*pruned_to_),
      from->second);
}

}  // namespace pawl::cli
