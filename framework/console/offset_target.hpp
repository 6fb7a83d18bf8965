#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

/// Where partitions shall go on: what stands behind --to and --to-timestamp, or in kafka.start.
struct OffsetTarget {
  enum class Kind { kOffset, kEarliest, kLatest, kCommitted, kTimestamp };

  Kind kind = Kind::kEarliest;
  std::int64_t number = 0;  ///< the next offset to process, or milliseconds since 1970
  std::string text;         ///< as the operator wrote it

  /// Of kTimestamp.
  [[nodiscard]] Timestamp time() const { return Timestamp{std::chrono::milliseconds{number}}; }

  /// "OFFSET", "earliest", "latest" or "committed"; throws BadCall.
  static OffsetTarget parse(const std::string& text);
  /// RFC 3339 with a time zone; throws BadCall, which names the option that it was given to.
  static OffsetTarget parse_time(const std::string& text,
                                 const std::string& option = "--to-timestamp");
  /// kafka.start; nullopt for "halt".
  static std::optional<OffsetTarget> start_of(const KafkaOptions& options);
};

/// The next offset to process, by partition. A committed offset that Kafka does not have, and a
/// time later than the last record, become the log's start and end. Throws kafka::KafkaError.
std::map<TopicPartition, std::int64_t> resolve(
    const kafka::Client& client, const OffsetTarget& target,
    const std::map<TopicPartition, kafka::LogRange>& ranges);

}  // namespace pawl::cli
