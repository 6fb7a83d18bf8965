#include "engine/topic_directory.hpp"

#include <fmt/format.h>

namespace pawl::engine {

std::string topic_refused_text(const std::string& topic, const std::string& why) {
  return fmt::format(
      "Kafka refuses topic {}: {}. Grant this user READ and DESCRIBE on it; until then nothing of "
      "it is processed, and other topics go on",
      topic, why);
}

TopicDirectory::TopicDirectory(const kafka::Client& client, std::vector<std::string> topics)
    : client_(client), topics_(std::move(topics)) {}

std::optional<kafka::TopicDescription> TopicDirectory::find(const std::string& topic,
                                                            std::chrono::milliseconds max_age) {
  bool fresh = false;
  {
    const std::scoped_lock lock(mutex_);
    fresh = described_at_ && Clock::now() - *described_at_ <= max_age;
  }
  if (!fresh)
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

void TopicDirectory::refresh() {
  auto answers = client_.describe_each(topics_, kafka::kAnswerTimeout);
  const std::scoped_lock lock(mutex_);
  answers_ = std::move(answers);
  described_at_ = Clock::now();
}

}  // namespace pawl::engine
