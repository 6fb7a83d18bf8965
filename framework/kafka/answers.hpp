#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "kafka/handles.hpp"
#include "message/partition_name.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// The answer about one of the partitions that Kafka was asked about; throws KafkaError
/// where it gave none.
template <typename T>
const T& answered(const std::map<TopicPartition, T>& answers, const TopicPartition& partition) {
  const auto found = answers.find(partition);
  if (found != answers.end())
    return found->second;
  throw KafkaError(ErrorKind::kPassing,
                   fmt::format("Kafka returned no offsets of {}", message::name_of(partition)));
}

/// The first offsets at or after a time: where Kafka has none for it (below 0) the log's end, which
/// is in `ends`; absent where Kafka did not tell that either, since a leader moved meanwhile.
inline std::map<TopicPartition, std::int64_t> or_ends(
    std::map<TopicPartition, std::int64_t> offsets,
    const std::map<TopicPartition, std::int64_t>& ends) {
  for (const auto& [partition, end] : ends)
    offsets[partition] = end;
  std::erase_if(offsets, [](const auto& entry) { return entry.second < 0; });
  return offsets;
}

}  // namespace pawl::kafka
