#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/condition.hpp"
#include "pawl/consumer.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// The lag that events tell; -1: not known. `message`: the offset of the message that the event is
/// about. As long as that waits, Kafka's log ends behind it, whatever was told of its end last.
[[nodiscard]] inline std::int64_t lag_to_tell(std::int64_t next, std::int64_t log_end, bool halted,
                                              std::optional<std::int64_t> message) {
  const auto end = message && *message >= next ? std::max(log_end, *message + 1) : log_end;
  if (end < 0 || next < 0 || (end < next && halted))
    return -1;
  return std::max<std::int64_t>(0, end - next);
}

/// What is compared with the topic's id in Kafka: taken before Kafka is asked, since whatever was
/// processed by then came from the topic that Kafka still names.
struct TopicLook {
  std::string topic_id;  ///< KIP-516: of the topic that the position is of; empty: unknown
  std::int64_t next = -1;
  std::int64_t log_end = -1;
  std::uint64_t acquired = 0;
};

/// The one live picture of a partition that a worker owns, from which the group thread, the
/// monitor, the log and whoever embeds the consumer read. The worker writes (the monitor: where
/// Kafka's log ends).
struct PartitionStatus {
  /// `former`: the last look of the partition's assignment before.
  explicit PartitionStatus(TopicPartition p, TopicLook former = {})
      : partition(std::move(p)), former_look_(std::move(former)) {}

  const TopicPartition partition;
  std::atomic<bool> acquired{false};
  std::atomic<bool> halted{false};
  std::atomic<bool> paused{false};  ///< by an operator
  std::atomic<bool> on_probation{false};
  std::atomic<std::uint32_t> fetch_crashes{0};
  /// The next offset to process: stored + 1; -1 before it is known.
  std::atomic<std::int64_t> position{-1};
  /// What of it a crash of the database cannot take back; moves only with Durability::kReplayable.
  std::atomic<std::int64_t> durable{-1};
  /// Where the log's end was seen last, by fetching (holes included); -1: not yet.
  std::atomic<std::int64_t> end_seen{-1};
  /// The log's end as Kafka told last; -1: not yet.
  std::atomic<std::int64_t> log_end{-1};
  /// When the message at `position` was produced, in ms since 1970, by its record; -1: not known.
  /// Kept only where an observer wants times.
  std::atomic<std::int64_t> waits_since{-1};
  /// The owner epoch under which a message or the end of the log has arrived, and the one of these
  /// that the register has noted (engine/crash_loop.hpp); -1: none.
  std::atomic<std::int64_t> begun_in{-1};
  std::atomic<std::int64_t> begun_noted{-1};
  /// How often Kafka has told it: shows that Kafka can be reached.
  std::atomic<std::uint64_t> log_end_answers{0};

  using Clock = std::chrono::steady_clock;
  /// The monitor asks every two seconds and waits for three: what is older was not told again.
  static constexpr std::chrono::seconds kLogEndFresh{15};

  /// Kafka has just told `log_end`.
  void log_end_told(Clock::time_point now = Clock::now()) {
    log_end_told_at_ = now.time_since_epoch().count();
  }

  [[nodiscard]] PartitionSnapshot snapshot(Clock::time_point now = Clock::now()) const {
    const auto known = [](std::int64_t offset) {
      return offset >= 0 ? std::optional(offset) : std::nullopt;
    };
    PartitionSnapshot snapshot{partition, acquired, halted, paused, known(position), std::nullopt};
    if (now - Clock::time_point(Clock::duration(log_end_told_at_)) < kLogEndFresh)
      snapshot.log_end = known(log_end);
    if (const auto since = known(waits_since))
      snapshot.waits_since = Timestamp(std::chrono::milliseconds(*since));
    snapshot.on_probation = on_probation;
    snapshot.fetch_crashes = fetch_crashes;
    if (snapshot.halted) {
      const std::scoped_lock lock(mutex_);
      snapshot.halt_reason = halt_reason_;
    }
    return snapshot;
  }

  /// It is halted, which has this reason now. Whether it was before.
  bool halt(std::string_view reason) {
    {
      const std::scoped_lock lock(mutex_);
      halt_reason_ = reason;
    }
    paused = false;
    return halted.exchange(true);
  }

  [[nodiscard]] TopicLook before_look() const {
    const std::scoped_lock lock(mutex_);
    return {topic_id_, position, log_end, acquired_};
  }
  /// Kafka has named that topic. Nothing when the partition was acquired again meanwhile.
  void named(const TopicLook& look) {
    const std::scoped_lock lock(mutex_);
    if (look.acquired != acquired_)
      return;
    looked_at_ = look.next;
    end_looked_at_ = look.log_end;
  }
  /// Acquired to go on at `next` in this topic, which Kafka names.
  void acquired_in(const std::string& topic_id, std::int64_t next) {
    const std::scoped_lock lock(mutex_);
    ++acquired_;
    const bool same = looked_at_ && topic_id_ == topic_id;
    looked_at_ = same ? std::min(*looked_at_, next) : next;
    if (!same)
      end_looked_at_ = -1;
    topic_id_ = topic_id;
  }
  /// What was known when Kafka last named the topic of the position: until the partition is
  /// acquired, by its assignment before.
  [[nodiscard]] TopicLook last_look() const {
    const std::scoped_lock lock(mutex_);
    return looked_at_ ? TopicLook{topic_id_, *looked_at_, end_looked_at_, acquired_} : former_look_;
  }

  /// The offset that Kafka may be told: not what a crash of the database may take back, for that is
  /// fetched again then. -1 before it is known.
  [[nodiscard]] std::int64_t next_for_kafka(Durability durability) const {
    return durability == Durability::kReplayable ? durable : position;
  }

 private:
  std::atomic<Clock::rep> log_end_told_at_{0};  ///< as time_since_epoch()
  const TopicLook former_look_;
  mutable std::mutex mutex_;
  std::string halt_reason_;                // guarded by mutex_
  std::string topic_id_;                   // guarded by mutex_
  std::uint64_t acquired_ = 0;             // guarded by mutex_
  std::optional<std::int64_t> looked_at_;  // guarded by mutex_
  std::int64_t end_looked_at_ = -1;        // guarded by mutex_
};

/// All partitions of this process, and what their messages wait for. Thread-safe.
class StatusBoard {
 public:
  std::shared_ptr<PartitionStatus> add(const TopicPartition& partition) {
    const std::scoped_lock lock(mutex_);
    const auto before = partitions_.find(partition);
    auto status = std::make_shared<PartitionStatus>(
        partition, before == partitions_.end() ? looks_[partition] : before->second->last_look());
    partitions_[partition] = status;
    return status;
  }
  /// Only the entry itself: a newer assignment of the partition may have replaced it.
  void remove(const std::shared_ptr<PartitionStatus>& status) {
    const std::scoped_lock lock(mutex_);
    const auto found = partitions_.find(status->partition);
    if (found == partitions_.end() || found->second != status)
      return;
    // A topic that is deleted takes the partition away, and the new one brings it back.
    looks_[status->partition] = status->last_look();
    partitions_.erase(found);
  }
  [[nodiscard]] std::vector<std::shared_ptr<PartitionStatus>> all() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<PartitionStatus>> result;
    result.reserve(partitions_.size());
    for (const auto& [partition, status] : partitions_)
      result.push_back(status);
    return result;
  }
  /// This process has the partition, and it is not paused.
  [[nodiscard]] bool is_at_work(const TopicPartition& partition) const {
    const std::scoped_lock lock(mutex_);
    const auto found = partitions_.find(partition);
    return found != partitions_.end() && !found->second->paused;
  }
  /// Messages of the partition from the stored offset to the end of Kafka's log; 0: unknown.
  [[nodiscard]] std::int64_t lag(const TopicPartition& partition) const {
    const std::scoped_lock lock(mutex_);
    const auto found = partitions_.find(partition);
    return found == partitions_.end() ? 0 : found->second->snapshot().lag().value_or(0);
  }

  /// Those that the monitor found last.
  void note_conditions(std::vector<Condition> conditions) {
    const std::scoped_lock lock(mutex_);
    conditions_ = std::move(conditions);
  }
  [[nodiscard]] std::vector<Condition> conditions() const {
    const std::scoped_lock lock(mutex_);
    return conditions_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<TopicPartition, std::shared_ptr<PartitionStatus>> partitions_;  // guarded by mutex_
  std::map<TopicPartition, TopicLook> looks_;                              // guarded by mutex_
  std::vector<Condition> conditions_;                                      // guarded by mutex_
};

}  // namespace pawl::engine
