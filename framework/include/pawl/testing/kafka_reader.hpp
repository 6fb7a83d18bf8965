#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pawl::testing {

/// A message as it stands in a topic. Absent key, value or header value are Kafka's null.
struct StoredRecord {
  int partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};

  /// Of the last header with this name; "" without one.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// Which records a reader sees (isolation.level): those of committed transactions alone, or also
/// those of aborted and open ones.
enum class ReadIsolation { kReadCommitted, kReadUncommitted };

/// Reads what is in a topic: all partitions, from their start to the end that they have when it is
/// called, in the order of partitions and offsets. With kReadCommitted it first waits until the
/// transactions that are open in the topic have ended: Kafka confirms a commit before the records
/// can be read (KIP-98). Throws std::runtime_error with librdkafka's reason, also for a record
/// whose headers cannot be read. Throws Timeout if a transaction stays open, or no record comes,
/// for `timeout`.
std::vector<StoredRecord> read_topic(const std::string& bootstrap, const std::string& topic,
                                     ReadIsolation isolation = ReadIsolation::kReadCommitted,
                                     std::chrono::milliseconds timeout = std::chrono::seconds{90});

}  // namespace pawl::testing
