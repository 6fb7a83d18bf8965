#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pawl/topic_partition.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Another process that had a partition and did not give it back.
struct PreviousOwner {
  std::string name;  ///< in the register: its hands' sessions are known by it
  std::optional<postgres::Backend> session;
};

/// Whose sessions may hold locks that a partition's messages wait for: of the process that had it
/// before this one and did not give it back. Remembered when the partition leaves this process and
/// comes back, for the register names only the last owner, and that is this process then.
/// So may server processes of this process' own sessions that were given up: a network that
/// swallows without a word leaves the server waiting for a client that is gone. Thread-safe.
class PreviousOwners {
 public:
  /// A session of this process is not used any more, and may be open on the server.
  void abandoned(postgres::Backend backend) {
    const std::scoped_lock lock(mutex_);
    abandoned_.push_back(std::move(backend));
    // More are not in anybody's way at once: what is open that long, the server's own keepalives
    // end.
    if (abandoned_.size() > kMostAbandoned)
      abandoned_.pop_front();
  }
  [[nodiscard]] std::vector<postgres::Backend> abandoned() const {
    const std::scoped_lock lock(mutex_);
    return {abandoned_.begin(), abandoned_.end()};
  }

  /// Another process had the partition; nullopt: it gave it back.
  void took_over(const TopicPartition& partition, std::optional<PreviousOwner> from) {
    const std::scoped_lock lock(mutex_);
    owners_[partition] = std::move(from);
  }
  [[nodiscard]] std::optional<PreviousOwner> of(const TopicPartition& partition) const {
    const std::scoped_lock lock(mutex_);
    const auto found = owners_.find(partition);
    return found != owners_.end() ? found->second : std::nullopt;
  }

 private:
  static constexpr std::size_t kMostAbandoned = 64;

  mutable std::mutex mutex_;
  std::deque<postgres::Backend> abandoned_;                        // guarded by mutex_
  std::map<TopicPartition, std::optional<PreviousOwner>> owners_;  // guarded by mutex_
};

}  // namespace pawl::engine
