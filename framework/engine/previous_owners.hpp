#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "pawl/topic_partition.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Whose sessions may hold locks that a partition's messages wait for: of the process that had it
/// before this one and did not give it back. Remembered when the partition leaves this process and
/// comes back, for the register names only the last owner, and that is this process then.
/// Thread-safe.
class PreviousOwners {
 public:
  /// Another process had the partition; nullopt: it gave it back.
  void took_over(const TopicPartition& partition, std::optional<postgres::Backend> from) {
    const std::scoped_lock lock(mutex_);
    sessions_[partition] = std::move(from);
  }
  [[nodiscard]] std::optional<postgres::Backend> session_of(const TopicPartition& partition) const {
    const std::scoped_lock lock(mutex_);
    const auto found = sessions_.find(partition);
    return found != sessions_.end() ? found->second : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::map<TopicPartition, std::optional<postgres::Backend>> sessions_;  // guarded by mutex_
};

}  // namespace pawl::engine
