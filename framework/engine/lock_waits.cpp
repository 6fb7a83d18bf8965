#include "engine/lock_waits.hpp"

#include <algorithm>
#include <utility>

namespace pawl::engine {

void LockWaits::failed(const TopicPartition& partition, std::int64_t offset,
                       const Failure& failure) {
  if (failure.waited_for_lock()) {
    waited(partition, offset, located_text(failure));
  } else if (failure.kind != postgres::FailureClass::kConnection) {
    ended(partition, offset);
  }
}

void LockWaits::waited(const TopicPartition& partition, std::int64_t offset, const std::string& why,
                       Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  any_ = true;
  auto& waits = partitions_[partition].waits;
  const auto since =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  waits.try_emplace(offset, Wait{now, since, ""}).first->second.why = why;
}

void LockWaits::ended(const TopicPartition& partition, std::int64_t offset) {
  if (!any_)
    return;
  const std::scoped_lock lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end())
    return;
  found->second.waits.erase(offset);
  drop_if_empty(found);
}

void LockWaits::passed(const TopicPartition& partition, std::int64_t last) {
  if (!any_)
    return;
  const std::scoped_lock lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end())
    return;
  auto& waits = found->second.waits;
  waits.erase(waits.begin(), waits.upper_bound(last));
  drop_if_empty(found);
}

void LockWaits::forget(const TopicPartition& partition) {
  if (!any_)
    return;
  const std::scoped_lock lock(mutex_);
  partitions_.erase(partition);
  any_ = !partitions_.empty();
}

void LockWaits::drop_if_empty(Partitions::iterator partition) {
  if (partition->second.waits.empty())
    partitions_.erase(partition);
  any_ = !partitions_.empty();
}

bool LockWaits::waits(const TopicPartition& partition) const {
  if (!any_)
    return false;
  const std::scoped_lock lock(mutex_);
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && !found->second.waits.empty();
}

void LockWaits::blocked_by(const TopicPartition& partition,
                           std::vector<ledger::BlockingSession> sessions) {
  const std::scoped_lock lock(mutex_);
  any_ = true;
  partitions_[partition].sessions = std::move(sessions);
}

std::vector<LockWaits::Blockers> LockWaits::blockers() const {
  std::vector<Blockers> blockers;
  if (!any_)
    return blockers;
  const std::scoped_lock lock(mutex_);
  for (const auto& [name, partition] : partitions_) {
    if (!partition.sessions.empty())
      blockers.push_back({name, partition.sessions});
  }
  return blockers;
}

void LockWaits::released(const TopicPartition& partition) {
  const std::scoped_lock lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end())
    return;
  found->second.sessions.clear();
  drop_if_empty(found);
}

std::vector<LockWaits::Blocked> LockWaits::blocked(
    std::chrono::milliseconds bound, const std::function<bool(const TopicPartition&)>& at_work,
    Clock::time_point now) {
  std::vector<Blocked> blocked;
  if (!any_)
    return blocked;
  const std::scoped_lock lock(mutex_);
  std::erase_if(partitions_, [&](const auto& partition) { return !at_work(partition.first); });
  any_ = !partitions_.empty();
  for (const auto& [name, partition] : partitions_) {
    if (partition.waits.empty())
      continue;
    const auto first = std::ranges::min_element(partition.waits, {},
                                                [](const auto& wait) { return wait.second.begun; });
    auto& one = blocked.emplace_back();
    one.lasting = now - first->second.begun >= bound;
    one.partition = name;
    one.since = first->second.since;
    one.messages = static_cast<std::int64_t>(partition.waits.size());
    one.blocking_pid = partition.sessions.empty() ? 0 : partition.sessions.front().pid;
    one.cause = partition.sessions.empty()
                    ? first->second.why
                    : ledger::text_of(partition.sessions) + ": " + first->second.why;
  }
  return blocked;
}

}  // namespace pawl::engine
