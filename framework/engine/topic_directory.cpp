#include "engine/topic_directory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kafka/choose_topics.hpp"

namespace pawl::engine {

std::string topic_refused_text(const std::string& topic, const std::string& why) {
  return fmt::format(
      "Kafka denies access to topic {}: {}. Grant the user of this process READ and DESCRIBE on "
      "it. "
      "Until then pawl processes no message of the topic. Other topics continue",
      topic, why);
}

TopicDirectory::TopicDirectory(const kafka::Client& client, const message::TopicEntries& entries)
    : client_(client), entries_(entries) {}

bool TopicDirectory::is_fresh(std::chrono::milliseconds max_age) const {
  const std::scoped_lock lock(mutex_);
  return described_at_ && Clock::now() - *described_at_ <= max_age;
}

std::optional<kafka::TopicDescription> TopicDirectory::find(const std::string& topic,
                                                            std::chrono::milliseconds max_age) {
  if (!is_fresh(max_age))
    refresh();
  const std::scoped_lock lock(mutex_);
  if (const auto refused = answers_.refused.find(topic); refused != answers_.refused.end())
    throw kafka::KafkaError(refused->second);
  const auto found = answers_.described.find(topic);
  if (found == answers_.described.end())
    return std::nullopt;
  return found->second;
}

std::optional<std::string> TopicDirectory::refusal(const std::string& topic) const {
  const std::scoped_lock lock(mutex_);
  const auto refused = answers_.refused.find(topic);
  if (refused == answers_.refused.end())
    return std::nullopt;
  return refused->second.what();
}

std::set<std::string> keep_missed(std::vector<std::string>& topics,
                                  const std::vector<std::string>& before,
                                  const std::set<std::string>& missed) {
  std::set<std::string> missing;
  for (const auto& topic : before) {
    if (missed.contains(topic) || std::ranges::find(topics, topic) != topics.end())
      continue;
    missing.insert(topic);
    topics.push_back(topic);
  }
  return missing;
}

void TopicDirectory::refresh() {
  auto chosen = kafka::choose_topics(client_, entries_, kafka::kAnswerTimeout);
  {
    const std::scoped_lock lock(mutex_);
    auto before = chosen_.topics;
    std::erase_if(before, [&](const auto& topic) { return chosen.ambiguous.contains(topic); });
    missed_ = keep_missed(chosen.topics, before, missed_);
    // In the order that choose() has: behind the names by their own.
    std::sort(chosen.topics.begin() + static_cast<std::ptrdiff_t>(entries_.names().size()),
              chosen.topics.end());
  }
  auto answers = client_.describe_each(chosen.topics, kafka::kAnswerTimeout);
  const std::scoped_lock lock(mutex_);
  chosen_ = std::move(chosen);
  answers_ = std::move(answers);
  described_at_ = Clock::now();
}

std::optional<std::vector<std::string>> TopicDirectory::followed() const {
  const std::scoped_lock lock(mutex_);
  return described_at_ ? std::optional(chosen_.topics) : std::nullopt;
}

std::vector<std::string> TopicDirectory::followed(std::chrono::milliseconds max_age) {
  if (!is_fresh(max_age))
    refresh();
  const std::scoped_lock lock(mutex_);
  return chosen_.topics;
}

std::map<std::string, std::vector<std::string>> TopicDirectory::ambiguous() const {
  const std::scoped_lock lock(mutex_);
  return chosen_.ambiguous;
}

}  // namespace pawl::engine
