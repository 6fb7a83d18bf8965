#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "ledger/halt.hpp"
#include "ledger/other_consumers.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// Why a partition begins where it begins.
enum class FirstPositionReason {
  kCommitted,         ///< the group has committed this offset to Kafka
  kNothingCommitted,  ///< it has committed none here, so the log's start
  kEarliest,
  kLatest,
  kTimestamp,
};
/// For people: "committed by the group".
[[nodiscard]] const char* to_string(FirstPositionReason reason);

/// Where kafka.start lets a partition begin that has no row yet.
struct FirstPosition {
  TopicPartition partition;
  std::int64_t next = 0;  ///< the first offset to process
  FirstPositionReason reason{};
};

/// Under which options a topic begins that the consumer has not met. `came_later`: than its
/// pattern: it begins at the log's start rather than at its end or at a time, since nothing that
/// was produced before somebody looked is to be lost.
[[nodiscard]] KafkaOptions first_start(KafkaOptions options, bool came_later);

/// Asks Kafka, for all partitions of a topic at once, in their order. Throws kafka::KafkaError when
/// it does not tell one of them. Of kafka.start = "halt" there is nothing to ask.
[[nodiscard]] std::vector<FirstPosition> first_positions(
    const kafka::Client& client, const KafkaOptions& options,
    const std::vector<TopicPartition>& partitions, std::chrono::milliseconds timeout);

/// "default/payments ([0] up to offset 41, [1] up to 17, ...)"
[[nodiscard]] std::string describe(const ledger::OtherConsumer& other);

/// Why a consumer must not begin a topic by itself that others of its database process, so that it
/// would do all of their effects again; nullopt: none do, kafka.known_consumers names them, or it
/// begins behind what there is ("latest") or nowhere ("halt").
[[nodiscard]] std::optional<ledger::Halt> refuse_beside(
    const KafkaOptions& options, const std::vector<ledger::OtherConsumer>& others);

}  // namespace pawl::engine
