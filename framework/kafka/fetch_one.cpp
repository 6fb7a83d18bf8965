#include "kafka/fetch_one.hpp"

#include "kafka/log_reader.hpp"

namespace pawl::kafka {

std::optional<Record> fetch_one(const Client& client, const TopicPartition& partition,
                                std::int64_t offset, std::chrono::milliseconds timeout) {
  return LogReader(client, partition, offset, timeout).next();
}

std::optional<Record> fetch_one_kept(const Client& client, const TopicPartition& partition,
                                     std::int64_t offset, std::chrono::milliseconds timeout) {
  return LogReader(client, partition, offset, timeout).next_kept();
}

}  // namespace pawl::kafka
