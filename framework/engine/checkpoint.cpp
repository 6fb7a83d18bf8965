#include "engine/checkpoint.hpp"

#include <algorithm>
#include <utility>

namespace pawl::engine {

std::optional<Checkpoint::Clock::time_point> Checkpoint::due() const {
  return wanted() ? std::optional(std::max(next_, Clock::now())) : std::nullopt;
}

/// What of it a commit that waited for the disk has put there.
Checkpoint::Reached Checkpoint::on_disk(Reached reached) {
  if (session_->pooled()) {
    // The server behind the pooler may be another one by now, that has lost what the first had.
    const auto rows = context_.offsets.owned_by(*session_, context_.owner);
    std::erase_if(reached, [&rows](const auto& mine) {
      const auto row = rows.find(mine.first);
      return row == rows.end() || row->second.stored.next() != mine.second;
    });
  }
  return reached;
}

Partition* Checkpoint::make(const Acquisition::Partitions& partitions) {
  if (!wanted() || Clock::now() < next_)
    return nullptr;
  next_ = Clock::now() + context_.options.consumer.durability_interval;
  Reached reached;
  for (const auto& [name, partition] : partitions) {
    const auto& status = partition->status();
    if (partition->held_here() && status.position > status.durable)
      reached.emplace(name, status.position);
  }
  if (reached.empty())
    return nullptr;
  try {
    // One of them stands for all: what this session committed before is on disk with it.
    auto& first = *partitions.at(reached.begin()->first);
    if (!context_.offsets.commit_durably(*session_, first.name(), *first.held().epoch))
      return &first;
    for (const auto& [name, position] : on_disk(std::move(reached)))
      partitions.at(name)->status().durable = position;
  } catch (const std::exception&) {
    session_.notice_failure(
        Warning::kCommitsNotDurable,
        "cannot flush commits to disk, so their offsets are not committed to Kafka");
  }
  return nullptr;
}

void Checkpoint::released(Partition& partition) {
  if (!wanted() || !partition.held_here())
    return;
  for (const auto& [name, position] : on_disk({{partition.name(), partition.status().position}}))
    partition.status().durable = position;
}

}  // namespace pawl::engine
