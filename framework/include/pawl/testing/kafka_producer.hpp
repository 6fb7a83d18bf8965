#pragma once

// Produces two payments in one Kafka transaction.
//
//   #include <pawl/testing/kafka_producer.hpp>
//
//   void produce_payments(const std::string& bootstrap) {
//     pawl::testing::KafkaProducer producer(bootstrap, "payments-producer");
//     producer.begin();
//     producer.send("payments", {.key = "a", .value = "100", .headers = {{"event-id", "1"}}});
//     producer.send("payments", {.key = "a", .value = "250", .headers = {{"event-id", "2"}}});
//     producer.commit();
//   }

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pawl::testing {

/// A message to produce. Nullopt: the key, value, or header value is null.
struct Record {
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
  /// The number of the partition, from 0. Negative: the producer's partitioner chooses by the key.
  int partition = -1;
  /// The timestamp, in milliseconds since the Unix epoch. 0: now.
  std::int64_t timestamp_ms = 0;
};

/// Produces to a real broker. It is not idempotent, unless a property or a transactional ID enables
/// that. Use it from one thread at a time. Every method throws std::runtime_error with librdkafka's
/// reason.
class KafkaProducer {
 public:
  /// `bootstrap`: "host:port", as KafkaBroker::bootstrap() returns it.
  ///
  /// `transactional_id`: each message then belongs to a transaction. Empty: no transactions.
  ///
  /// `properties`: further properties of librdkafka.
  explicit KafkaProducer(const std::string& bootstrap, const std::string& transactional_id = "",
                         const std::map<std::string, std::string>& properties = {});
  /// Drops messages that were not flushed. An open transaction stays open until the broker aborts
  /// it
  /// (`transaction.timeout.ms`).
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  /// Queues a message. Waits while the local queue is full.
  void send(const std::string& topic, const Record& record);
  /// Returns when the broker has acknowledged every message. Throws std::runtime_error if the
  /// broker rejected one, and Timeout after `deadline`.
  void flush(std::chrono::milliseconds deadline = std::chrono::seconds{60});

  /// Begins a transaction. Requires a transactional ID, as do commit() and abort().
  void begin();
  /// Flushes, then commits the transaction.
  void commit();
  /// Flushes, then aborts the transaction.
  void abort();

 private:
  class Client;
  std::string bootstrap_;
  std::unique_ptr<Client> client_;
};

}  // namespace pawl::testing
