#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "kafka/client.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// Reads one partition's log forward, as a consumer of committed data sees it: never joins the
/// group, never commits. For a client that nobody else uses meanwhile: it assigns the partition,
/// and unassigns it in the end. Records must go before the client, which waits for them in its
/// destructor. One thread; librdkafka's buffers (kafka.buffer) bound the memory.
class LogReader {
 public:
  /// Begins at `from`; `patience` bounds the wait for each record. Throws KafkaError.
  LogReader(const Client& client, TopicPartition partition, std::int64_t from,
            std::chrono::milliseconds patience);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// The next record; nullopt: the log ends here for now. Throws KafkaError: with the code
  /// RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET when the log does not hold the position (any more), and
  /// when nothing comes in time.
  std::optional<Record> next();
  /// The same, without a copy of it: a message must go before the next one is read.
  std::optional<Record> next_kept();

 private:
  std::optional<Record> read(bool keeps);

  rd_kafka_t* client_;
  TopicPartition partition_;
  std::int64_t next_;
  std::chrono::milliseconds patience_;
};

}  // namespace pawl::kafka
