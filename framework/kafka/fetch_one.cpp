#include "kafka/fetch_one.hpp"

#include "kafka/log_reader.hpp"

namespace pawl::kafka {

std::unique_ptr<Client> client_of_one_message(KafkaOptions options) {
  // Another name of fetch.message.max.bytes, and set after it.
  options.librdkafka.erase("max.partition.fetch.bytes");
  // A broker sends a first batch whatever its size.
  options.librdkafka["fetch.message.max.bytes"] = "1";
  options.librdkafka["queued.min.messages"] = "1";
  return std::make_unique<Client>(options, LogFunction{});
}

std::optional<Record> fetch_one(const Client& client, const TopicPartition& partition,
                                std::int64_t offset, std::chrono::milliseconds timeout) {
  return LogReader(client, partition, offset, timeout).next();
}

std::optional<Record> fetch_one_kept(const Client& client, const TopicPartition& partition,
                                     std::int64_t offset, std::chrono::milliseconds timeout) {
  return LogReader(client, partition, offset, timeout).next_kept();
}

}  // namespace pawl::kafka
