#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/failure.hpp"
#include "ledger/blocking_sessions.hpp"
#include "pawl/message.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// Messages whose attempts run into a limit of time behind a lock, again and again: since when, and
/// which session holds the lock, as far as the monitor has seen it. Any thread.
class LockWaits {
 public:
  using Clock = std::chrono::steady_clock;

  /// An attempt of the message at this offset failed. -1: acquiring the partition did. A wait for a
  /// lock begins or continues, or an answer of another kind ends it. A lost connection is no
  /// answer: the lock may be there, and the message runs again.
  void failed(const TopicPartition& partition, std::int64_t offset, const Failure& failure);
  /// An attempt of it waited for a lock in vain.
  void waited(const TopicPartition& partition, std::int64_t offset, const std::string& why,
              Clock::time_point now = Clock::now());
  /// An attempt of it ended in another way.
  void ended(const TopicPartition& partition, std::int64_t offset);
  /// The stored offset is here: no message up to it waits.
  void passed(const TopicPartition& partition, std::int64_t last);
  /// The partition has left, or stands elsewhere.
  void forget(const TopicPartition& partition);

  [[nodiscard]] bool waits(const TopicPartition& partition) const;
  /// Those that block its attempt now, which may be the first.
  void blocked_by(const TopicPartition& partition, std::vector<ledger::BlockingSession> sessions);
  struct Blockers {
    TopicPartition partition;
    std::vector<ledger::BlockingSession> sessions;
  };
  [[nodiscard]] std::vector<Blockers> blockers() const;
  /// They block it no more.
  void released(const TopicPartition& partition);

  struct Blocked {
    TopicPartition partition;
    Timestamp since;
    std::int64_t messages = 0;  ///< that wait by themselves
    std::string cause;
    bool lasting = false;           ///< a message has waited for as long as the bound
    std::int32_t blocking_pid = 0;  ///< as Condition::blocking_pid
  };
  /// Partitions of which a message waits. Forgets those that are not `at_work`: an attempt may have
  /// ended after its partition had left or was paused.
  [[nodiscard]] std::vector<Blocked> blocked(
      std::chrono::milliseconds bound, const std::function<bool(const TopicPartition&)>& at_work,
      Clock::time_point now = Clock::now());

 private:
  struct Wait {
    Clock::time_point begun;
    Timestamp since;
    std::string why;
  };
  struct Partition {
    std::map<std::int64_t, Wait> waits;  ///< by offset; empty: no attempt has waited in vain yet
    std::vector<ledger::BlockingSession> sessions;
  };
  using Partitions = std::map<TopicPartition, Partition>;

  void drop_if_empty(Partitions::iterator partition);

  /// Spares the lock while nothing waits.
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  Partitions partitions_;  // guarded by mutex_
};

}  // namespace pawl::engine
