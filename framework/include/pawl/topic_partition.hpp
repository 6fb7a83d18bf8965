#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace pawl {

/// A partition of a topic. Ordered by topic, then by number.
struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const TopicPartition&) const = default;
};

}  // namespace pawl
