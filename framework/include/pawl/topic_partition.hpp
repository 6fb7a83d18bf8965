#pragma once

// Returns the lag of each partition, in messages.
//
//   #include <cstdint>
//   #include <map>
//   #include <pawl/consumer.hpp>
//   #include <pawl/topic_partition.hpp>
//
//   std::map<pawl::TopicPartition, std::int64_t> lags(const pawl::Consumer& consumer) {
//     std::map<pawl::TopicPartition, std::int64_t> lags;
//     for (const pawl::PartitionSnapshot& snapshot : consumer.partitions()) {
//       if (const auto lag = snapshot.lag())
//         lags[snapshot.partition] = *lag;
//     }
//     return lags;
//   }

#include <compare>
#include <cstdint>
#include <string>

namespace pawl {

/// One partition of one topic; ordered by topic, then by number.
struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;  ///< its number, from 0
  auto operator<=>(const TopicPartition&) const = default;
};

}  // namespace pawl
