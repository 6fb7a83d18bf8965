#include "engine/first_positions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "kafka/answers.hpp"

namespace pawl::engine {
namespace {

constexpr std::size_t kMostPartitions = 3;

}  // namespace

const char* to_string(FirstPositionReason reason) {
  switch (reason) {
    case FirstPositionReason::kCommitted:
      return "committed by the group";
    case FirstPositionReason::kNothingCommitted:
      return "the log's start: the group has committed nothing here";
    case FirstPositionReason::kEarliest:
      return "the log's start";
    case FirstPositionReason::kLatest:
      return "the log's end";
    case FirstPositionReason::kTimestamp:
      return "the first record at or after kafka.start, or the log's end";
  }
  return "unknown";
}

KafkaOptions first_start(KafkaOptions options, bool came_later) {
  if (came_later && (options.start == Start::kLatest || options.start == Start::kTimestamp))
    options.start = Start::kEarliest;
  return options;
}

std::vector<FirstPosition> first_positions(const kafka::Client& client, const KafkaOptions& options,
                                           const std::vector<TopicPartition>& partitions,
                                           std::chrono::milliseconds timeout) {
  const auto ranges = client.log_ranges(partitions, timeout);
  std::map<TopicPartition, kafka::CommittedOffset> committed;
  std::map<TopicPartition, std::int64_t> at_time;
  if (options.start == Start::kCommitted)
    committed = client.committed(partitions, timeout);
  if (options.start == Start::kTimestamp)
    at_time = client.offsets_at(partitions, options.start_timestamp, timeout);
  std::vector<FirstPosition> positions;
  for (const auto& partition : partitions) {
    const auto& range = kafka::answered(ranges, partition);
    FirstPosition position{partition, range.start, FirstPositionReason::kEarliest};
    if (options.start == Start::kLatest) {
      position = {partition, range.end, FirstPositionReason::kLatest};
    } else if (options.start == Start::kTimestamp) {
      position = {partition, kafka::answered(at_time, partition), FirstPositionReason::kTimestamp};
    } else if (options.start == Start::kCommitted) {
      const auto next = kafka::answered(committed, partition).next;
      position.reason =
          next >= 0 ? FirstPositionReason::kCommitted : FirstPositionReason::kNothingCommitted;
      if (next >= 0)
        position.next = next;
    }
    positions.push_back(std::move(position));
  }
  return positions;
}

std::string describe(const ledger::OtherConsumer& other) {
  std::vector<std::string> parts;
  for (const auto& [partition, stored] : other.stored) {
    if (parts.size() == kMostPartitions) {
      parts.push_back(fmt::format("and {} more", other.stored.size() - kMostPartitions));
      break;
    }
    parts.push_back(stored < 0 ? fmt::format("[{}] nothing yet", partition)
                               : fmt::format("[{}] up to offset {}", partition, stored));
  }
  return fmt::format("{} ({})", other.name(), fmt::join(parts, ", "));
}

std::optional<ledger::Halt> refuse_beside(const KafkaOptions& options,
                                          const std::vector<ledger::OtherConsumer>& others) {
  if (options.start == Start::kLatest || options.start == Start::kHalt)
    return std::nullopt;
  std::vector<std::string> described;
  std::vector<std::string> names;
  for (const auto& other : others) {
    const bool named = std::ranges::any_of(options.known_consumers, [&](const auto& name) {
      return name == other.group || name == other.name();
    });
    if (named)
      continue;
    described.push_back(describe(other));
    names.push_back(fmt::format("\"{}\"", other.name()));
  }
  if (names.empty())
    return std::nullopt;
  auto halt = ledger::make_halt(ledger::halt_code::kTopicOfOtherConsumer);
  halt.parameters = {
      {ledger::halt_parameter::kConsumers, fmt::format("{}", fmt::join(described, "; "))},
      {ledger::halt_parameter::kConsumerNames, fmt::format("{}", fmt::join(names, ", "))}};
  return halt;
}

}  // namespace pawl::engine
