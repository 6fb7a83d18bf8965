#include "kafka/log_reader.hpp"

#include <fmt/format.h>

#include <utility>

#include "message/partition_name.hpp"

namespace pawl::kafka {

LogReader::LogReader(const Client& client, TopicPartition partition, std::int64_t from,
                     std::chrono::milliseconds patience)
    : client_(client.raw()), partition_(std::move(partition)), next_(from), patience_(patience) {
  const auto list = new_list();
  rd_kafka_topic_partition_list_add(list.get(), partition_.topic.c_str(), partition_.partition)
      ->offset = from;
  if (const auto code = rd_kafka_assign(client_, list.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw KafkaError(code, fmt::format("assigning {}: {}", message::name_of(partition_),
                                       rd_kafka_err2str(code)));
  }
}

LogReader::~LogReader() {
  // librdkafka does not end with an assignment left.
  rd_kafka_assign(client_, nullptr);
}

std::optional<Record> LogReader::next() {
  return read(false);
}

std::optional<Record> LogReader::next_kept() {
  return read(true);
}

std::optional<Record> LogReader::read(bool keeps) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience_;
  for (auto now = Clock::now(); now < deadline; now = Clock::now()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
    MessageHandle message(rd_kafka_consumer_poll(client_, static_cast<int>(left)));
    if (!message)
      continue;
    const bool keep = keeps && message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    auto record = keep ? Record(std::move(message)) : Record(*message);
    switch (record.kind()) {
      case Record::Kind::kMessage:
        // A record before the position is left over from nothing of ours.
        if (record.offset() < next_)
          continue;
        next_ = record.offset() + 1;
        return record;
      case Record::Kind::kEndOfLog:
        return std::nullopt;
      case Record::Kind::kError:
        break;
    }
    // librdkafka reconnects to unreachable brokers.
    if (record.error() == RD_KAFKA_RESP_ERR__TRANSPORT ||
        record.error() == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
      continue;
    }
    throw KafkaError(
        record.error(),
        fmt::format("reading {}: {}", message::name_of(partition_, next_), record.error_text()));
  }
  throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT,
                   fmt::format("reading {}: no record arrived within {} ms",
                               message::name_of(partition_, next_), patience_.count()));
}

}  // namespace pawl::kafka
