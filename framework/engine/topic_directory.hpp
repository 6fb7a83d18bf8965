#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"

namespace pawl::engine {

/// For people, with what to do. `why`: as Kafka says it.
[[nodiscard]] std::string topic_refused_text(const std::string& topic, const std::string& why);

/// What Kafka says about the topics, remembered for a short while, so that acquiring a thousand
/// partitions does not ask a thousand times. Thread-safe; asks Kafka on the caller's thread.
class TopicDirectory {
 public:
  TopicDirectory(const kafka::Client& client, std::vector<std::string> topics);

  /// Nullopt: the topic does not exist. Throws kafka::KafkaError, also when Kafka refuses this one.
  std::optional<kafka::TopicDescription> find(const std::string& topic,
                                              std::chrono::milliseconds max_age);

  /// Why Kafka refused the topic when it was asked last; nullopt: it did not.
  [[nodiscard]] std::optional<std::string> refusal(const std::string& topic) const;

  /// Asks again now. Throws kafka::KafkaError.
  void refresh();

 private:
  using Clock = std::chrono::steady_clock;

  const kafka::Client& client_;
  const std::vector<std::string> topics_;
  mutable std::mutex mutex_;
  kafka::TopicAnswers answers_;                    // guarded by mutex_
  std::optional<Clock::time_point> described_at_;  // guarded by mutex_
};

}  // namespace pawl::engine
