#include "engine/assignment_halts.hpp"

#include <utility>

#include "engine/position_checks.hpp"

namespace pawl::engine {

std::map<TopicPartition, kafka::LogRange> whole_logs(
    const kafka::Client& client, std::map<TopicPartition, kafka::LogRange> ranges,
    const std::map<TopicPartition, ledger::Position>& stored, std::chrono::milliseconds timeout) {
  std::vector<TopicPartition> beyond;
  for (const auto& [partition, position] : stored) {
    const auto found = ranges.find(partition);
    if (found != ranges.end() && position.next() > found->second.end)
      beyond.push_back(partition);
  }
  if (beyond.empty())
    return ranges;
  const auto ends = client.high_watermarks(beyond, timeout);
  for (const auto& partition : beyond) {
    const auto end = ends.find(partition);
    if (end == ends.end())
      ranges.erase(partition);
    else
      ranges[partition].end = end->second;
  }
  return ranges;
}

std::optional<ledger::Halt> halt_at_assignment(const ledger::RegisterRow& row,
                                               const std::string& topic_id,
                                               const std::optional<kafka::LogRange>& log) {
  const bool halted = row.state == ledger::PartitionState::kHalted;
  if (halted && row.halt.kind == ledger::halt_kind::kPosition)
    return std::nullopt;
  ledger::Acquired acquired;
  acquired.stored = row.stored;
  acquired.state = row.state;
  acquired.halt = row.halt;
  acquired.topic_id = row.topic_id;
  auto halt = other_topic(acquired, topic_id, {});
  if (!halt && log && !row.owned())
    halt = outside_log(row.stored, *log);
  return halt ? std::optional(after_earlier_halt(*std::move(halt), acquired)) : std::nullopt;
}

std::optional<ledger::Halt> halt_of_missing_row(std::int32_t partition,
                                                std::int32_t first_partitions) {
  if (partition >= first_partitions)
    return std::nullopt;
  auto halt = ledger::make_halt(ledger::halt_code::kOffsetRowMissing);
  halt.parameters[ledger::halt_parameter::kPartitions] = std::to_string(first_partitions);
  return halt;
}

AssignmentHalts halts_at_assignment(const kafka::Client& client,
                                    const std::vector<const ledger::RegisterRow*>& rows,
                                    const std::map<std::string, kafka::TopicDescription>& topics,
                                    const std::map<TopicPartition, kafka::LogRange>& ranges,
                                    std::chrono::milliseconds timeout) {
  std::map<TopicPartition, ledger::Position> stored;
  for (const auto* row : rows)
    stored.emplace(row->partition, row->stored);
  const auto logs = whole_logs(client, ranges, stored, timeout);
  AssignmentHalts halts;
  for (const auto* row : rows) {
    const auto topic = topics.find(row->partition.topic);
    if (topic == topics.end() || row->partition.partition >= topic->second.partitions)
      continue;
    const auto log = logs.find(row->partition);
    if (auto halt = halt_at_assignment(
            *row, topic->second.id, log == logs.end() ? std::nullopt : std::optional(log->second)))
      halts.emplace(row->partition, *std::move(halt));
  }
  return halts;
}

std::vector<std::vector<TopicPartition>> by_cause(const AssignmentHalts& halts) {
  std::map<std::pair<std::string, std::string>, std::vector<TopicPartition>> causes;
  for (const auto& [partition, halt] : halts)
    causes[{partition.topic, halt.code}].push_back(partition);
  std::vector<std::vector<TopicPartition>> groups;
  for (auto& [cause, partitions] : causes)
    groups.push_back(std::move(partitions));
  return groups;
}

}  // namespace pawl::engine
