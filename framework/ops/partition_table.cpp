#include "ops/partition_table.hpp"

#include <functional>

namespace pawl::ops {
namespace {

constexpr std::size_t kFirstSize = 64;

std::size_t hash(std::string_view topic, std::int32_t partition) {
  return std::hash<std::string_view>{}(topic) + static_cast<std::size_t>(partition) * 0x9E3779B9U;
}

}  // namespace

PartitionTable::PartitionTable() {
  tables_.push_back(std::make_unique<Table>(kFirstSize));
  current_ = tables_.back().get();
}

std::atomic<PartitionProgress*>& PartitionTable::slot(Table& table, std::string_view topic,
                                                      std::int32_t partition) {
  const auto mask = table.slots.size() - 1;
  auto at = hash(topic, partition) & mask;
  while (true) {
    const auto* entry = table.slots[at].load(std::memory_order_acquire);
    if (entry == nullptr || (entry->name.partition == partition && entry->name.topic == topic)) {
      return table.slots[at];
    }
    at = (at + 1) & mask;
  }
}

PartitionProgress* PartitionTable::find(std::string_view topic, std::int32_t partition) const {
  return slot(*current_.load(std::memory_order_acquire), topic, partition)
      .load(std::memory_order_acquire);
}

PartitionProgress& PartitionTable::add(std::string_view topic, std::int32_t partition) {
  const std::scoped_lock lock(mutex_);
  if (auto* known = find(topic, partition))
    return *known;
  entries_.push_back(
      std::make_unique<PartitionProgress>(TopicPartition{std::string(topic), partition}));
  if (entries_.size() * 2 > tables_.back()->slots.size()) {
    auto larger = std::make_unique<Table>(tables_.back()->slots.size() * 2);
    for (const auto& entry : entries_) {
      slot(*larger, entry->name.topic, entry->name.partition) = entry.get();
    }
    tables_.push_back(std::move(larger));
    current_.store(tables_.back().get(), std::memory_order_release);
  } else {
    slot(*tables_.back(), topic, partition).store(entries_.back().get(), std::memory_order_release);
  }
  return *entries_.back();
}

std::vector<const PartitionProgress*> PartitionTable::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<const PartitionProgress*> result;
  result.reserve(entries_.size());
  for (const auto& entry : entries_)
    result.push_back(entry.get());
  return result;
}

}  // namespace pawl::ops
