#include "console/topics_seen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "console/partition_view.hpp"
#include "handlers/topic_entries.hpp"
#include "message/topic_entries.hpp"

namespace pawl::cli {

TopicsSeen topics_seen(const Options& options, const KafkaLook& look,
                       const std::set<TopicPartition>& stored) {
  TopicsSeen seen;
  seen.refused = look.refused;
  for (const auto& [topic, patterns] : look.ambiguous)
    seen.ambiguous[topic] = message::ambiguous_topic_text(topic, patterns);
  if (!look.problem.empty())
    return seen;
  const auto missing = [&look](const std::string& topic) {
    return !look.topics.contains(topic) && !look.refused.contains(topic);
  };
  std::ranges::copy_if(look.handled, std::back_inserter(seen.missing), missing);
  std::set<std::string> stored_topics;
  for (const auto& partition : stored)
    stored_topics.insert(partition.topic);
  const auto entries = handlers::topic_entries(options);
  // A topic that no handler means any more may go unnoticed; one that is named is missing.
  std::ranges::copy_if(stored_topics, std::back_inserter(seen.gone), [&](const auto& topic) {
    const auto entry = missing(topic) ? entries.entry_of(topic) : std::string();
    return !entry.empty() && entry != topic;
  });
  for (const auto& topic : look.handled) {
    const auto found = look.topics.find(topic);
    UnstoredPartitions unstored{topic, {}, !stored_topics.contains(topic)};
    for (std::int32_t p = 0; found != look.topics.end() && p < found->second.partitions; ++p) {
      if (!stored.contains({topic, p}))
        unstored.partitions.push_back(p);
    }
    if (!unstored.partitions.empty())
      seen.unstored.push_back(std::move(unstored));
  }
  return seen;
}

std::string missing_topic_text(const std::string& topic) {
  return fmt::format(
      "Topic {} does not exist in Kafka. Create it, or remove it from the configuration.", topic);
}

std::string gone_topic_text(const std::string& topic) {
  return fmt::format(
      "Topic {} no longer exists in Kafka. Its stored offsets remain. If the topic is created "
      "again, its partitions halt.",
      topic);
}

std::string unstored_text(const UnstoredPartitions& unstored) {
  return fmt::format(
      "No offset is stored for {}. No process has started there yet, or a process halted there: "
      "its log contains the reason.",
      unstored_name(unstored));
}

std::string unstored_name(const UnstoredPartitions& unstored) {
  if (unstored.all)
    return unstored.topic;
  std::vector<TopicPartition> partitions;
  for (const auto number : unstored.partitions)
    partitions.push_back({unstored.topic, number});
  return names_of(partitions);
}

}  // namespace pawl::cli
