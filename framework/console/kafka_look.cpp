#include "console/kafka_look.hpp"

#include <chrono>
#include <set>

#include "console/connections.hpp"
#include "console/partition_view.hpp"

namespace pawl::cli {

std::optional<std::int64_t> KafkaLook::end_of(const TopicPartition& partition) const {
  const auto found = ranges.find(partition);
  if (found == ranges.end())
    return std::nullopt;
  return found->second.end;
}

std::optional<std::int64_t> KafkaLook::end_before(const TopicPartition& partition) const {
  const auto found = ends_before.find(partition);
  if (found == ends_before.end())
    return std::nullopt;
  return found->second;
}

KafkaLook look_at_kafka(const Options& options, std::unique_ptr<kafka::Client>& client,
                        const std::vector<TopicPartition>& partitions, bool handled) {
  KafkaLook look;
  std::set<std::string> topics;
  for (const auto& partition : partitions)
    topics.insert(partition.topic);
  try {
    if (!client)
      client = make_client(options);
    static_cast<void>(client->cluster_id(kKafkaTimeout));
    if (handled) {
      auto chosen = choose_topics(options, *client);
      look.handled = std::move(chosen.topics);
      look.ambiguous = std::move(chosen.ambiguous);
      topics.insert(look.handled.begin(), look.handled.end());
    }
    auto answers = client->describe_each({topics.begin(), topics.end()}, kKafkaTimeout);
    look.topics = std::move(answers.described);
    for (const auto& [topic, why] : answers.refused)
      look.refused[topic] = why.what();
    // A question about what does not exist would spoil the others' answers.
    std::set<TopicPartition> existing;
    for (const auto& partition : partitions) {
      const auto topic = look.topics.find(partition.topic);
      if (topic != look.topics.end() && partition.partition < topic->second.partitions)
        existing.insert(partition);
    }
    for (const auto& name : look.handled) {
      const auto topic = look.topics.find(name);
      for (std::int32_t p = 0; topic != look.topics.end() && p < topic->second.partitions; ++p)
        existing.insert({name, p});
    }
    look.ranges = client->log_ranges({existing.begin(), existing.end()}, kKafkaTimeout);
  } catch (const kafka::KafkaError& error) {
    look.problem = error.what();
  }
  return look;
}

void look_back(KafkaLook& look, const kafka::Client* client,
               const std::vector<const ledger::RegisterRow*>& rows) {
  if (!look.problem.empty() || client == nullptr)
    return;
  std::vector<TopicPartition> asked;
  for (const auto* row : rows) {
    if (may_be_stalled(*row) && lag_of(row, look.end_of(row->partition)).value_or(0) > 0)
      asked.push_back(row->partition);
  }
  const auto before = std::chrono::system_clock::now() - kStalledAfter;
  try {
    look.ends_before = client->offsets_at(
        asked, std::chrono::floor<std::chrono::milliseconds>(before), kKafkaTimeout);
  } catch (const kafka::KafkaError& error) {
    look.problem = error.what();
  }
}

}  // namespace pawl::cli
