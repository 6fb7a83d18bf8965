#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pawl::testing {

/// A message to produce. Absent key or value are Kafka's null.
struct Record {
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  /// Negative: the producer's partitioner chooses by the key.
  int partition = -1;
  /// Milliseconds since 1970; 0: now.
  std::int64_t timestamp_ms = 0;
};

/// Produces to a real broker. Not idempotent unless asked by a property; with a transactional id
/// it writes transactions, committed or aborted at will. One thread at a time.
class KafkaProducer {
 public:
  /// `properties` are librdkafka's. Throws std::runtime_error with librdkafka's reason; so does
  /// every method.
  explicit KafkaProducer(const std::string& bootstrap, const std::string& transactional_id = "",
                         const std::map<std::string, std::string>& properties = {});
  /// Messages that were not flushed are dropped; an open transaction stays open until the broker
  /// times it out.
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  /// Queues a message; waits while the local queue is full.
  void send(const std::string& topic, const Record& record);
  /// Returns when the broker has acknowledged every message. Throws when one was refused.
  void flush(std::chrono::milliseconds deadline = std::chrono::seconds{60});

  void begin();
  void commit();
  void abort();

 private:
  class Client;
  std::string bootstrap_;
  std::unique_ptr<Client> client_;
};

}  // namespace pawl::testing
