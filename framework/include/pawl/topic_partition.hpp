#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace pawl {

/// One partition of one topic; ordered by topic, then number.
struct TopicPartition {
  std::string topic;
  std::int32_t partition = 0;
  auto operator<=>(const TopicPartition&) const = default;
};

}  // namespace pawl
