#pragma once

#include <cstdint>
#include <string>

#include "pawl/topic_partition.hpp"

namespace pawl::message {

/// "orders[3]"
[[nodiscard]] std::string name_of(const TopicPartition& partition);
/// "orders[3]@341": the message at an offset.
[[nodiscard]] std::string name_of(const TopicPartition& partition, std::int64_t offset);

}  // namespace pawl::message
