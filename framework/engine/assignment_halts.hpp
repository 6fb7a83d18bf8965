#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "ledger/halt.hpp"
#include "ledger/register_view.hpp"
#include "ledger/types.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

// Halts that `status` and `check` report before a process finds them. The decisions are those of an
// assignment: position_checks.hpp.

/// The log ranges against which stored offsets are compared. `ranges` end at the stable end. An
/// offset after that is still in the log if a transaction is open, so the high watermark replaces
/// such an end. A partition whose high watermark Kafka does not report is absent. Throws
/// KafkaError.
[[nodiscard]] std::map<TopicPartition, kafka::LogRange> whole_logs(
    const kafka::Client& client, std::map<TopicPartition, kafka::LogRange> ranges,
    const std::map<TopicPartition, ledger::Position>& stored, std::chrono::milliseconds timeout);

/// The halt that the next assignment of the partition would cause, or nullopt. Empty IDs and a
/// missing log are unknown. The stored offset of a running owner may have advanced since the row
/// was read, so only the topic of such a row is compared. Pure.
[[nodiscard]] std::optional<ledger::Halt> halt_at_assignment(
    const ledger::RegisterRow& row, const std::string& topic_id,
    const std::optional<kafka::LogRange>& log);

/// The halt of a partition without a row if its topic had `first_partitions` partitions at the
/// first assignment: the row was deleted. Nullopt: the partition was added later. Pure.
[[nodiscard]] std::optional<ledger::Halt> halt_of_missing_row(std::int32_t partition,
                                                              std::int32_t first_partitions);

using AssignmentHalts = std::map<TopicPartition, ledger::Halt>;

/// Of the rows whose partitions exist in `topics`, by name. `ranges`: what log_ranges() returned of
/// them. Throws KafkaError.
[[nodiscard]] AssignmentHalts halts_at_assignment(
    const kafka::Client& client, const std::vector<const ledger::RegisterRow*>& rows,
    const std::map<std::string, kafka::TopicDescription>& topics,
    const std::map<TopicPartition, kafka::LogRange>& ranges, std::chrono::milliseconds timeout);

/// The partitions of one topic that would halt with one code. Pure.
[[nodiscard]] std::vector<std::vector<TopicPartition>> by_cause(const AssignmentHalts& halts);

}  // namespace pawl::engine
