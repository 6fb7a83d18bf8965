#pragma once

#include <map>
#include <mutex>

#include "ledger/position.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// The halts at messages that this process has made, or has confirmed by one more try: the next
/// process tries them again, or an operator does. Any thread.
class TriedHalts {
 public:
  /// The partition is halted behind `stored` after the message there was tried.
  void add(const TopicPartition& partition, ledger::Position stored) {
    const std::scoped_lock lock(mutex_);
    halted_behind_.insert_or_assign(partition, stored);
  }
  /// What was begun and had no outcome, as when the session was lost, is not tried.
  [[nodiscard]] bool contains(const TopicPartition& partition, ledger::Position stored) const {
    const std::scoped_lock lock(mutex_);
    const auto found = halted_behind_.find(partition);
    return found != halted_behind_.end() && found->second == stored;
  }

 private:
  mutable std::mutex mutex_;
  std::map<TopicPartition, ledger::Position> halted_behind_;
};

}  // namespace pawl::engine
