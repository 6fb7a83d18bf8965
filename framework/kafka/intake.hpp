#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kafka/client.hpp"
#include "kafka/fetch_buffer.hpp"
#include "kafka/handles.hpp"
#include "kafka/partition_stream.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// Takes what librdkafka has fetched out of its queue as soon as it is there, and gives it to the
/// partitions' streams; so that librdkafka goes on fetching, which rests where its queue is full.
/// What the streams hold together is bounded here: a partition that holds too much is paused, and
/// sought to where it was and resumed when its worker has processed some of it
/// (docs/architecture/fetching.md). Made and destroyed on the group thread; it has a thread of its
/// own.
class Intake {
 public:
  explicit Intake(Client& client);
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // From the group thread:
  /// Makes the stream of a partition and takes the partition's queue out of the consumer's main
  /// queue; throws KafkaError.
  std::shared_ptr<PartitionStream> add(const TopicPartition& partition,
                                       std::function<void()> on_readable);
  /// Lets go of the partition's queue, which forwards as before (librdkafka #1335, #1792).
  void remove(PartitionStream& stream);

  // From the partition's worker:
  /// Drops what the stream holds and lets it await records from `offset` on, to which `seek` tells
  /// librdkafka to go and to resume. What `seek` throws leaves it shut. Throws KafkaError
  /// (RD_KAFKA_RESP_ERR__STATE) when the partition was given away.
  void open(PartitionStream& stream, std::int64_t offset, const std::function<void()>& seek);
  /// Drops what the stream holds and awaits nothing more; `pause` tells librdkafka to deliver none.
  void shut(PartitionStream& stream, const std::function<void()>& pause);

  // From any thread:
  [[nodiscard]] FetchBuffer& buffer() { return buffer_; }
  /// There is room for more of a partition that was stopped.
  void ask_resume(std::shared_ptr<PartitionStream> stream);

 private:
  static constexpr std::size_t kTake = 256;

  static void on_event(rd_kafka_t* client, void* opaque);
  void signal();
  void run();
  void route_all();
  bool take_from_queue();
  bool route();
  PartitionStream* find(const rd_kafka_message_t& message);
  [[nodiscard]] bool is_current(const PartitionStream& stream) const;
  void forget(const PartitionStream& stream);
  void stop_delivery(const PartitionStream& stream);
  bool resume(PartitionStream& stream);

  rd_kafka_t* client_;
  FetchBuffer buffer_;
  QueueHandle queue_;  ///< to which the queues of all partitions forward

  /// Held while records are on their way from the queue to a stream, and while a partition is
  /// positioned: so that none that was fetched from an old position enters a stream behind it. Not
  /// held while waiting for room.
  std::mutex routing_mutex_;
  // Guarded by routing_mutex_:
  struct Routed {
    std::shared_ptr<PartitionStream> stream;
    QueueHandle queue;
  };
  std::map<TopicPartition, Routed> streams_;
  PartitionStream* last_ = nullptr;  ///< the stream of the message before
  struct InHand {
    PartitionStream* stream;
    Record record;
  };
  std::deque<InHand> in_hand_;  ///< out of the queue, not in a stream yet
  std::vector<rd_kafka_message_t*> taken_;

  std::mutex signal_mutex_;
  std::condition_variable signalled_;
  // Guarded by signal_mutex_:
  bool woken_ = false;
  bool stopping_ = false;
  std::vector<std::shared_ptr<PartitionStream>> resumes_;

  std::thread thread_;
};

}  // namespace pawl::kafka
