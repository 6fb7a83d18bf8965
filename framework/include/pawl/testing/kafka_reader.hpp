#pragma once

// Whether a topic contains exactly one committed record for an order.
//
//   #include <algorithm>
//   #include <pawl/testing/kafka_reader.hpp>
//
//   bool booked_once(const std::string& bootstrap, const std::string& order) {
//     const auto records = pawl::testing::read_topic(bootstrap, "payments-booked");
//     return std::count_if(records.begin(), records.end(),
//                          [&](const auto& record) { return record.key == order; }) == 1;
//   }

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pawl::testing {

/// A record of a topic. Nullopt: the key, value, or header value is null.
struct StoredRecord {
  int partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> key = {};
  std::optional<std::string> value = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};

  /// The value of the last header with this name. Empty: the header is missing, or its value is
  /// null or empty.
  [[nodiscard]] std::string header(const std::string& name) const;
};

/// Which records are read (`isolation.level` of Kafka's consumers).
enum class ReadIsolation {
  kReadCommitted,    ///< those outside of transactions and of committed transactions
  kReadUncommitted,  ///< also those of aborted and open transactions
};

/// Returns the records of all partitions of a topic, from the start of each log to its end, sorted
/// by partition and offset. Any thread.
///
/// With kReadCommitted, it first waits until the open transactions of the topic have finished. The
/// reason: Kafka confirms a commit before the records can be read (KIP-98).
///
/// Throws std::runtime_error with librdkafka's reason, also if the headers of a record cannot be
/// read. Throws Timeout if a transaction stays open for `timeout`, or if no record arrives for
/// `timeout`.
std::vector<StoredRecord> read_topic(const std::string& bootstrap, const std::string& topic,
                                     ReadIsolation isolation = ReadIsolation::kReadCommitted,
                                     std::chrono::milliseconds timeout = std::chrono::seconds{90});

}  // namespace pawl::testing
