#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kafka/client.hpp"
#include "kafka/record.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

/// Which message a command reads.
struct MessagePlace {
  TopicPartition partition;
  std::int64_t offset = 0;
  bool exact = true;  ///< false: the next message after it suffices
};

struct FoundMessage {
  kafka::Record record;  ///< must go before its client
  std::string topic_id;  ///< empty: the broker has none
};

/// Reads one message from Kafka, with a client that no other thread uses. Throws BadCall if the
/// place has no message, and kafka::KafkaError if Kafka does not respond.
[[nodiscard]] FoundMessage find_message(const kafka::Client& client,
                                        const InvocationOptions& invocation,
                                        const MessagePlace& place);

// The texts of that BadCall: the place, the range that exists, and a command to paste. Pure.

/// `partitions`: of the topic; nullopt: Kafka has no such topic. Nullopt: the partition exists.
[[nodiscard]] std::optional<std::string> missing_partition_text(
    const InvocationOptions& invocation, const TopicPartition& partition,
    std::optional<std::int32_t> partitions);
/// Nullopt: the log has offsets from which the message can be read.
[[nodiscard]] std::optional<std::string> outside_log_text(const InvocationOptions& invocation,
                                                          const MessagePlace& place,
                                                          const kafka::LogRange& log);
/// After a read. `next`: the first message after the place; nullopt: there is none. Nullopt: it is
/// the message that the command reads.
[[nodiscard]] std::optional<std::string> no_message_text(const InvocationOptions& invocation,
                                                         const MessagePlace& place,
                                                         const kafka::LogRange& log,
                                                         std::optional<std::int64_t> next);

}  // namespace pawl::cli
