#include "engine/coverage.hpp"

#include <algorithm>
#include <iterator>

namespace pawl::engine {

bool may_be_left_out(const KafkaOptions& options) {
  return options.group_protocol == GroupProtocol::kClassic && !options.group_instance_id.empty() &&
         options.assignment == Assignment::kGroup;
}

std::vector<TopicPartition> Coverage::look(
    const std::set<TopicPartition>& wanted,
    const std::optional<std::set<TopicPartition>>& assigned) {
  settled_ = false;
  if (!assigned) {
    missed_.clear();
    return {};
  }
  std::set<TopicPartition> missing;
  std::ranges::set_difference(wanted, *assigned, std::inserter(missing, missing.end()));
  std::erase_if(returned_, [&](const TopicPartition& one) { return !missing.contains(one); });
  std::vector<TopicPartition> found;
  settled_ = true;
  for (const auto& one : missing) {
    if (returned_.contains(one))
      continue;
    settled_ = false;
    if (missed_.contains(one))
      found.push_back(one);
  }
  returned_.insert(found.begin(), found.end());
  missed_ = std::move(missing);
  return found;
}

}  // namespace pawl::engine
