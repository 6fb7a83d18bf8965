#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// What workers ask of the other threads of their consumer. Any thread.
class Requests {
 public:
  /// Of the group thread: to make Kafka's client fetch the partition anew.
  void restart_fetch(const TopicPartition& partition) {
    const std::scoped_lock lock(mutex_);
    restarts_.insert(partition);
  }
  [[nodiscard]] std::set<TopicPartition> take_restarts() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(restarts_, {});
  }

  /// Of the group thread: to leave the group and join it again.
  void rejoin() {
    const std::scoped_lock lock(mutex_);
    rejoin_ = true;
  }
  [[nodiscard]] bool take_rejoin() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(rejoin_, false);
  }

  /// Of the monitor: to look at the topics' ids soon.
  void doubt_topics() {
    {
      const std::scoped_lock lock(mutex_);
      doubted_ = true;
    }
    changed_.notify_one();
  }
  /// Waits for a doubt, or for so long. Returns whether there was one, which is taken with that.
  [[nodiscard]] bool wait_for_doubt(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [this] { return doubted_; });
    return std::exchange(doubted_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<TopicPartition> restarts_;  // guarded by mutex_
  bool rejoin_ = false;                // guarded by mutex_
  bool doubted_ = false;               // guarded by mutex_
};

}  // namespace pawl::engine
