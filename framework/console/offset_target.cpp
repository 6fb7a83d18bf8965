#include "console/offset_target.hpp"

#include <fmt/format.h>

#include <charconv>

#include "config/document.hpp"
#include "console/bad_call.hpp"
#include "console/connections.hpp"

namespace pawl::cli {

OffsetTarget OffsetTarget::parse(const std::string& text) {
  if (text == "earliest")
    return {Kind::kEarliest, 0, text};
  if (text == "latest")
    return {Kind::kLatest, 0, text};
  if (text == "committed")
    return {Kind::kCommitted, 0, text};
  std::int64_t offset = -1;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, offset);
  if (parsed.ec != std::errc{} || parsed.ptr != end || offset < 0) {
    throw BadCall(fmt::format(
        "invalid value for --to: \"{}\". Use the next offset to process (0 or more), earliest, "
        "latest, or committed",
        text));
  }
  return {Kind::kOffset, offset, text};
}

OffsetTarget OffsetTarget::parse_time(const std::string& text, const std::string& option) {
  const auto time = config::parse_time(text);
  if (!time) {
    throw BadCall(
        fmt::format("invalid value for {}: \"{}\". Use RFC 3339 with a time zone: "
                    "2026-01-31T00:00:00Z or 2026-01-31T01:00:00+01:00",
                    option, text));
  }
  return {Kind::kTimestamp, *time, text};
}

std::optional<OffsetTarget> OffsetTarget::start_of(const KafkaOptions& options) {
  switch (options.start) {
    case Start::kCommitted:
      return OffsetTarget{Kind::kCommitted, 0, "committed"};
    case Start::kEarliest:
      return OffsetTarget{Kind::kEarliest, 0, "earliest"};
    case Start::kLatest:
      return OffsetTarget{Kind::kLatest, 0, "latest"};
    case Start::kTimestamp:
      return OffsetTarget{Kind::kTimestamp, options.start_timestamp.time_since_epoch().count(),
                          "timestamp"};
    case Start::kHalt:
      break;
  }
  return std::nullopt;
}

std::map<TopicPartition, std::int64_t> resolve(
    const kafka::Client& client, const OffsetTarget& target,
    const std::map<TopicPartition, kafka::LogRange>& ranges) {
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, range] : ranges)
    partitions.push_back(partition);
  if (target.kind == OffsetTarget::Kind::kTimestamp) {
    auto found = client.offsets_at(partitions, target.time(), kKafkaTimeout);
    if (found.size() != partitions.size()) {
      throw kafka::KafkaError(kafka::ErrorKind::kPassing, "a partition has no leader");
    }
    return found;
  }
  std::map<TopicPartition, kafka::CommittedOffset> committed;
  if (target.kind == OffsetTarget::Kind::kCommitted) {
    committed = client.committed(partitions, kKafkaTimeout);
  }
  std::map<TopicPartition, std::int64_t> next;
  for (const auto& [partition, range] : ranges) {
    switch (target.kind) {
      case OffsetTarget::Kind::kOffset:
        next[partition] = target.number;
        break;
      case OffsetTarget::Kind::kLatest:
        next[partition] = range.end;
        break;
      case OffsetTarget::Kind::kCommitted:
        next[partition] = committed[partition].next >= 0 ? committed[partition].next : range.start;
        break;
      default:
        next[partition] = range.start;
    }
  }
  return next;
}

}  // namespace pawl::cli
