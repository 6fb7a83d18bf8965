#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "dead_letters/store/view.hpp"
#include "kafka/client.hpp"
#include "kafka/record.hpp"

namespace pawl::engine {

/// Reads from Kafka what pawl.dead_letters does not hold of a letter. One thread.
class LetterSource {
 public:
  /// `client` is called when one is first needed, and each time after.
  explicit LetterSource(std::function<kafka::Client&()> client) : client_(std::move(client)) {}

  /// Nullopt: the message is not there (any more). Throws kafka::KafkaError when Kafka does not
  /// say, after 15 s.
  std::optional<kafka::Record> operator()(const ledger::DeadLetter& letter);

 private:
  bool exists(const TopicPartition& partition);

  std::function<kafka::Client&()> client_;
  std::map<std::string, std::int32_t> partitions_;  ///< by topic, as last seen
};

}  // namespace pawl::engine
