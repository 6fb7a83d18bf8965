#include "console/find_message.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "kafka/answers.hpp"
#include "kafka/fetch_one.hpp"
#include "message/partition_name.hpp"

namespace pawl::cli {
namespace {

using message::name_of;

std::string with_stored_offsets(const InvocationOptions& invocation, const std::string& text) {
  return fmt::format("{}. Topics, stored offsets, and ends of logs:\n  {}", text,
                     command_text(invocation, "offsets show"));
}

std::string with_message_at(const InvocationOptions& invocation, const std::string& text,
                            const TopicPartition& partition, std::int64_t offset) {
  return fmt::format("{}:\n  {} {} --offset {}", text, command_text(invocation, "partitions peek"),
                     partition_words(partition), offset);
}

void require(const std::optional<std::string>& problem) {
  if (problem)
    throw BadCall(*problem);
}

}  // namespace

std::optional<std::string> missing_partition_text(const InvocationOptions& invocation,
                                                  const TopicPartition& partition,
                                                  std::optional<std::int32_t> partitions) {
  if (!partitions) {
    return with_stored_offsets(invocation,
                               fmt::format("topic {} does not exist in Kafka", partition.topic));
  }
  if (partition.partition >= 0 && partition.partition < *partitions)
    return std::nullopt;
  return with_stored_offsets(
      invocation, fmt::format("{} does not exist, because topic {} has {}, {}", name_of(partition),
                              partition.topic, counted(*partitions, "partition", "partitions"),
                              *partitions == 1 ? "0" : fmt::format("0 to {}", *partitions - 1)));
}

std::optional<std::string> outside_log_text(const InvocationOptions& invocation,
                                            const MessagePlace& place, const kafka::LogRange& log) {
  if (place.offset >= log.start && place.offset < log.end)
    return std::nullopt;
  const bool is_before = place.offset < log.start && log.start < log.end;
  if (!place.exact && !is_before)
    return no_message_text(invocation, place, log, std::nullopt);
  const auto name = name_of(place.partition, place.offset);
  if (log.start >= log.end) {
    return with_stored_offsets(
        invocation, fmt::format("{} cannot be read, because Kafka delivers no message of this "
                                "partition: its log is empty and ends at offset {}",
                                name, log.end));
  }
  const auto text =
      fmt::format("{} cannot be read, because Kafka delivers offsets {} to {} of this partition",
                  name, log.start, log.end - 1);
  return is_before
             ? with_message_at(invocation, text + ". The first message", place.partition, log.start)
             : with_stored_offsets(invocation, text);
}

std::optional<std::string> no_message_text(const InvocationOptions& invocation,
                                           const MessagePlace& place, const kafka::LogRange& log,
                                           std::optional<std::int64_t> next) {
  if (next && (*next == place.offset || !place.exact))
    return std::nullopt;
  if (!place.exact) {
    return with_stored_offsets(
        invocation, fmt::format("{} has no message at or after offset {}, and its log ends at "
                                "offset {}",
                                name_of(place.partition), place.offset, log.end));
  }
  const auto text = fmt::format(
      "{} is not a message: it is a marker of a transaction, belongs to an aborted transaction, or "
      "was removed by compaction",
      name_of(place.partition, place.offset));
  return next ? with_message_at(invocation, text + ". The next message", place.partition, *next)
              : with_stored_offsets(
                    invocation,
                    fmt::format("{}. No message follows before the end of the log at offset {}",
                                text, log.end));
}

FoundMessage find_message(const kafka::Client& client, const InvocationOptions& invocation,
                          const MessagePlace& place) {
  const auto& topic = place.partition.topic;
  // Before the record is read: its memory may be all that is left.
  const auto answers = client.describe_each({topic}, kKafkaTimeout);
  if (const auto refused = answers.refused.find(topic); refused != answers.refused.end())
    throw kafka::KafkaError(refused->second);
  const auto found = answers.described.find(topic);
  const bool exists = found != answers.described.end();
  require(missing_partition_text(invocation, place.partition,
                                 exists ? std::optional(found->second.partitions) : std::nullopt));
  const auto ranges = client.log_ranges({place.partition}, kKafkaTimeout);
  const auto& log = kafka::answered(ranges, place.partition);
  require(outside_log_text(invocation, place, log));
  auto record = kafka::fetch_one_kept(client, place.partition, place.offset, kMessageTimeout);
  require(no_message_text(invocation, place, log,
                          record ? std::optional(record->offset()) : std::nullopt));
  return {*std::move(record), found->second.id};
}

}  // namespace pawl::cli
