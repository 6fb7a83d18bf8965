#include "kafka/partition_stream.hpp"

namespace pawl::kafka {

PartitionStream::PartitionStream(rd_kafka_t* client, TopicPartition partition,
                                 std::function<void()> on_readable)
    : client_(client), partition_(std::move(partition)), on_readable_(std::move(on_readable)) {
  queue_.reset(
      rd_kafka_queue_get_partition(client_, partition_.topic.c_str(), partition_.partition));
  if (!queue_) {
    throw KafkaError(
        RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION,
        "no queue for " + partition_.topic + "; the partition is not known to librdkafka");
  }
  rd_kafka_queue_forward(queue_.get(), nullptr);
  rd_kafka_queue_cb_event_enable(queue_.get(), &PartitionStream::on_event, this);
}

PartitionStream::~PartitionStream() {
  close();
}

void PartitionStream::on_event(rd_kafka_t*, void* opaque) {
  static_cast<PartitionStream*>(opaque)->on_readable_();
}

std::vector<Record> PartitionStream::take(std::size_t most) {
  std::vector<Record> records;
  std::vector<rd_kafka_message_t*> raw(most);
  const std::scoped_lock lock(mutex_);
  if (!queue_)
    return records;
  const auto count = rd_kafka_consume_batch_queue(queue_.get(), 0, raw.data(), most);
  if (count <= 0)
    return records;
  records.reserve(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    records.emplace_back(MessageHandle(raw[i]));
  }
  return records;
}

std::optional<std::int32_t> PartitionStream::leader_epoch_before(std::int64_t end) const {
  // Control records are not delivered, but they move librdkafka's position, which has their epoch.
  const auto list = new_list();
  auto* entry =
      rd_kafka_topic_partition_list_add(list.get(), partition_.topic.c_str(), partition_.partition);
  if (rd_kafka_position(client_, list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      entry->err != RD_KAFKA_RESP_ERR_NO_ERROR || entry->offset != end)
    return std::nullopt;
  const auto epoch = rd_kafka_topic_partition_get_leader_epoch(entry);
  if (epoch < 0)
    return std::nullopt;
  return epoch;
}

void PartitionStream::close() {
  const std::scoped_lock lock(mutex_);
  if (!queue_)
    return;
  rd_kafka_queue_cb_event_enable(queue_.get(), nullptr, nullptr);
  // What is still queued goes to the consumer's main queue, where it is dropped.
  const QueueHandle main(rd_kafka_queue_get_consumer(client_));
  if (main)
    rd_kafka_queue_forward(queue_.get(), main.get());
  queue_.reset();
}

}  // namespace pawl::kafka
