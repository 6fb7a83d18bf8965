#include "console/topics_seen.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "config/invocation.hpp"
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
    for (std::int32_t p = 0; found != look.topics.end() && p < found->second; ++p) {
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
      "Topic {} does not exist in Kafka: create it, or take it out of the configuration.", topic);
}

std::string gone_topic_text(const std::string& topic) {
  return fmt::format(
      "Topic {} does not exist in Kafka any more. What is stored of it stays; should it come "
      "again, it halts.",
      topic);
}

std::string unstored_text(const UnstoredPartitions& unstored, const InvocationOptions& invocation) {
  return fmt::format(
      "Nothing is stored of topic {}{}: no process has begun {}, or one has refused to, and is "
      "halted there: its log says why; see also: {}",
      unstored.topic,
      unstored.all ? "" : fmt::format(", partition {}", fmt::join(unstored.partitions, ", ")),
      unstored.all || unstored.partitions.size() == 1 ? "it" : "them",
      command_text(invocation, "check"));
}

}  // namespace pawl::cli
