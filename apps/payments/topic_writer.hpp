#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "payment_series.hpp"

namespace payments {

template <auto Destroy>
struct Destroyer {
  template <typename T>
  void operator()(T* pointer) const {
    Destroy(pointer);
  }
};
using KafkaHandle = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;

/// Produces payments to one topic, acknowledged by all replicas and without duplicates of the
/// producer's own making: those of the series are the only ones. One thread; every method throws
/// std::runtime_error with Kafka's reason.
class TopicWriter {
 public:
  /// `at_once`: each message is sent individually, without waiting some milliseconds for others.
  TopicWriter(const std::string& bootstrap_servers, std::string topic, bool at_once = false);

  /// Creates the topic if it does not exist. Returns the number of its partitions.
  std::int32_t ensure_topic(std::int32_t partitions);

  /// Queues a message whose value is at least that long; waits while too many are on their way.
  void send(const Event& event, std::size_t value_bytes = 0);

  /// Returns when all are acknowledged.
  void flush();

  /// The end offset of each partition.
  [[nodiscard]] std::vector<std::int64_t> ends(std::int32_t partitions) const;

 private:
  [[nodiscard]] std::int32_t partitions_there() const;
  [[nodiscard]] std::int64_t end(std::int32_t partition) const;
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self);
  void require_delivered() const;

  std::string topic_;
  std::string failure_;  ///< of the first message that Kafka rejected
  KafkaHandle kafka_;
};

}  // namespace payments
