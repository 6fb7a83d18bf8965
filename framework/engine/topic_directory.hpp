#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "message/topic_entries.hpp"

namespace pawl::engine {

/// For people, with what to do. `why`: as Kafka says it.
[[nodiscard]] std::string topic_refused_text(const std::string& topic, const std::string& why);

/// Adds those of `before` that are not among `topics` and were not `missed` the time before: an
/// answer of a broker that has just begun may lack some. Returns those that it added.
[[nodiscard]] std::set<std::string> keep_missed(std::vector<std::string>& topics,
                                                const std::vector<std::string>& before,
                                                const std::set<std::string>& missed);

/// What Kafka says about the topics, remembered for a short while, so that acquiring a thousand
/// partitions does not ask a thousand times. Thread-safe; asks Kafka on the caller's thread.
class TopicDirectory {
 public:
  TopicDirectory(const kafka::Client& client, const message::TopicEntries& entries);

  /// Nullopt: the topic does not exist. Throws kafka::KafkaError, also when Kafka refuses this one.
  std::optional<kafka::TopicDescription> find(const std::string& topic,
                                              std::chrono::milliseconds max_age);

  /// Why Kafka refused the topic when it was asked last; nullopt: it did not.
  [[nodiscard]] std::optional<std::string> refusal(const std::string& topic) const;

  /// Asks again now. Throws kafka::KafkaError.
  void refresh();

  /// The topics that the consumer follows, as of the last answer: those that are named, and those
  /// that there are for its patterns. Nullopt: there was none yet.
  [[nodiscard]] std::optional<std::vector<std::string>> followed() const;
  /// The same as of an answer that is not older.
  [[nodiscard]] std::vector<std::string> followed(std::chrono::milliseconds max_age);
  /// Topics that more than one pattern means, with these; nobody follows them.
  [[nodiscard]] std::map<std::string, std::vector<std::string>> ambiguous() const;

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_fresh(std::chrono::milliseconds max_age) const;

  const kafka::Client& client_;
  const message::TopicEntries& entries_;
  mutable std::mutex mutex_;
  message::TopicEntries::Chosen chosen_;           // guarded by mutex_
  std::set<std::string> missed_;                   // guarded by mutex_
  kafka::TopicAnswers answers_;                    // guarded by mutex_
  std::optional<Clock::time_point> described_at_;  // guarded by mutex_
};

}  // namespace pawl::engine
