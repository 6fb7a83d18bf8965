#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "pawl/topic_partition.hpp"

namespace pawl::cli {

/// The message that has waited the longest, by the timestamps of records.
struct OldestWaiting {
  TopicPartition partition;
  /// A lower bound: at most a tenth, or a second, too short.
  std::chrono::milliseconds age{0};
  friend bool operator==(const OldestWaiting&, const OldestWaiting&) = default;
};

/// Where the logs of partitions ended that long ago. A partition may be missing.
using EndsBefore = std::function<std::map<TopicPartition, std::int64_t>(
    const std::vector<TopicPartition>& partitions, std::chrono::milliseconds age)>;

/// Of partitions with messages to process, and their next offsets. Reads no message: it asks for
/// the ends of the logs about ten times, and for fewer partitions each time. Nullopt: there is no
/// partition.
[[nodiscard]] std::optional<OldestWaiting> find_oldest(std::map<TopicPartition, std::int64_t> next,
                                                       const EndsBefore& ends_before);

}  // namespace pawl::cli
