#include "cli/kafka_look.hpp"

#include <algorithm>

#include "cli/connections.hpp"

namespace pawl::cli {

std::optional<std::int64_t> KafkaLook::end_of(const TopicPartition& partition) const {
  const auto found = ranges.find(partition);
  if (found == ranges.end())
    return std::nullopt;
  return found->second.end;
}

KafkaLook look_at_kafka(const Options& options, std::unique_ptr<kafka::Client>& client,
                        const std::vector<std::string>& topics,
                        const std::vector<TopicPartition>& partitions) {
  KafkaLook look;
  try {
    if (!client)
      client = make_client(options);
    static_cast<void>(client->cluster_id(kKafkaTimeout));
    const auto answers = client->describe_each(topics, kKafkaTimeout);
    for (const auto& [topic, description] : answers.described)
      look.topics[topic] = description.partitions;
    for (const auto& [topic, why] : answers.refused)
      look.refused[topic] = why.what();
    // A question about what does not exist would spoil the others' answers.
    std::vector<TopicPartition> existing;
    for (const auto& partition : partitions) {
      const auto topic = look.topics.find(partition.topic);
      if (topic != look.topics.end() && partition.partition < topic->second)
        existing.push_back(partition);
    }
    if (partitions.empty()) {
      for (const auto& [topic, count] : look.topics) {
        for (std::int32_t p = 0; p < count; ++p)
          existing.push_back({topic, p});
      }
    }
    look.ranges = client->log_ranges(existing, kKafkaTimeout);
  } catch (const kafka::KafkaError& error) {
    look.problem = error.what();
  }
  return look;
}

std::int64_t lag_of(std::int64_t stored_offset, std::int64_t end) {
  return std::max<std::int64_t>(0, end - stored_offset - 1);
}

}  // namespace pawl::cli
