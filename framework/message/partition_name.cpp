#include "message/partition_name.hpp"

#include <fmt/format.h>

namespace pawl::message {

std::string name_of(const TopicPartition& partition) {
  return fmt::format("{}[{}]", partition.topic, partition.partition);
}

std::string name_of(const TopicPartition& partition, std::int64_t offset) {
  return fmt::format("{}@{}", name_of(partition), offset);
}

}  // namespace pawl::message
