#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kafka/handles.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// One assigned partition's own queue in librdkafka. Made on the group thread before the partition
/// is assigned, so that no record can reach the consumer's main queue; read by one worker; closed
/// on the group thread before the partition is unassigned. All streams of a partition read the same
/// queue, so one that stayed open would steal from its successor.
class PartitionStream {
 public:
  /// `on_readable` is called from librdkafka's threads whenever the queue turns from empty to
  /// non-empty; it must be quick and must not call back into this class.
  PartitionStream(rd_kafka_t* client, TopicPartition partition, std::function<void()> on_readable);
  ~PartitionStream();
  PartitionStream(const PartitionStream&) = delete;
  PartitionStream& operator=(const PartitionStream&) = delete;

  [[nodiscard]] const TopicPartition& partition() const { return partition_; }

  /// Takes up to `most` records that are there already; never waits. Nothing once it is closed.
  std::vector<Record> take(std::size_t most);

  /// The leader epoch (KIP-320) of what stands right before `end` in the log, be it a control
  /// record; nullopt unless the record taken last, seen or unseen, is the one before `end`.
  [[nodiscard]] std::optional<std::int32_t> leader_epoch_before(std::int64_t end) const;

  /// Lets go of the queue: no more call-backs, forwarding as before (librdkafka #1335, #1792). From
  /// any thread, any number of times.
  void close();

 private:
  static void on_event(rd_kafka_t* client, void* opaque);

  rd_kafka_t* client_;
  TopicPartition partition_;
  std::function<void()> on_readable_;
  std::mutex mutex_;
  QueueHandle queue_;  // guarded by mutex_; null once closed
};

}  // namespace pawl::kafka
