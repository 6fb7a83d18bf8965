#include "kafka/fetch_one.hpp"

#include <fmt/format.h>

namespace pawl::kafka {
namespace {

/// The client's assignment, given back whatever happens: librdkafka does not end with one left.
class Assigned {
 public:
  Assigned(rd_kafka_t* client, const TopicPartition& partition, std::int64_t offset)
      : client_(client) {
    const auto list = new_list();
    rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition)
        ->offset = offset;
    if (const auto code = rd_kafka_assign(client, list.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      throw KafkaError(code, fmt::format("assigning {} [{}]: {}", partition.topic,
                                         partition.partition, rd_kafka_err2str(code)));
    }
  }
  ~Assigned() { rd_kafka_assign(client_, nullptr); }
  Assigned(const Assigned&) = delete;
  Assigned& operator=(const Assigned&) = delete;

 private:
  rd_kafka_t* client_;
};

}  // namespace

std::optional<Record> fetch_one(const Client& client, const TopicPartition& partition,
                                std::int64_t offset, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + timeout;
  const Assigned assigned(client.raw(), partition, offset);
  while (Clock::now() < deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    MessageHandle message(rd_kafka_consumer_poll(client.raw(), static_cast<int>(left)));
    if (!message)
      continue;
    Record record(std::move(message));
    switch (record.kind()) {
      case Record::Kind::kMessage:
        // A record before the position is left over from nothing of ours.
        if (record.offset() < offset)
          continue;
        return record;
      case Record::Kind::kEndOfLog:
        return std::nullopt;
      case Record::Kind::kError:
        break;
    }
    // Brokers that are away are librdkafka's to find again.
    if (record.error() == RD_KAFKA_RESP_ERR__TRANSPORT ||
        record.error() == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
      continue;
    }
    throw KafkaError(record.error(), fmt::format("reading {} [{}] offset {}: {}", partition.topic,
                                                 partition.partition, offset, record.error_text()));
  }
  throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT,
                   fmt::format("reading {} [{}] offset {}: nothing came within {} ms",
                               partition.topic, partition.partition, offset, timeout.count()));
}

}  // namespace pawl::kafka
