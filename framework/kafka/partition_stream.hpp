#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kafka/handles.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// One assigned partition's own queue in librdkafka. Made on the group thread before the partition
/// is assigned, so that no record can reach the consumer's main queue; read by one worker.
class PartitionStream {
 public:
  /// `on_readable` is called from librdkafka's threads whenever the queue turns from empty to
  /// non-empty; it must be quick and must not call back into this class.
  PartitionStream(rd_kafka_t* client, TopicPartition partition, std::function<void()> on_readable);
  ~PartitionStream();
  PartitionStream(const PartitionStream&) = delete;
  PartitionStream& operator=(const PartitionStream&) = delete;

  [[nodiscard]] const TopicPartition& partition() const { return partition_; }

  /// Takes up to `most` records that are there already; never waits.
  std::vector<Record> take(std::size_t most);

  /// Lets go of the queue: no more call-backs, forwarding as before. Needed before the partition is
  /// unassigned (librdkafka #1335, #1792). After it take() returns nothing.
  void close();

 private:
  static void on_event(rd_kafka_t* client, void* opaque);

  rd_kafka_t* client_;
  TopicPartition partition_;
  std::function<void()> on_readable_;
  QueueHandle queue_;
};

}  // namespace pawl::kafka
