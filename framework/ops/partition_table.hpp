#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "pawl/topic_partition.hpp"

namespace pawl::ops {

/// What the log knows of one partition. All members are atomic: workers write, the ticker reads.
struct PartitionProgress {
  explicit PartitionProgress(TopicPartition p) : name(std::move(p)) {}

  const TopicPartition name;
  std::atomic<bool> owned{false};
  std::atomic<bool> halted{false};
  std::atomic<bool> paused{false};
  std::atomic<std::int64_t> next{-1};  ///< the next offset to process; -1: unknown
  std::atomic<std::int64_t> end{-1};   ///< the log's end as seen last; -1: unknown
};

/// The partitions that this process has met, found without a lock: it stands in the path of every
/// message. Entries are never removed; a table that has grown full is followed by one twice as
/// large, and kept, since readers may still be in it.
class PartitionTable {
 public:
  PartitionTable();

  /// Nullptr when the partition has not been added. Lock-free.
  [[nodiscard]] PartitionProgress* find(std::string_view topic, std::int32_t partition) const;
  PartitionProgress& add(std::string_view topic, std::int32_t partition);
  [[nodiscard]] std::vector<const PartitionProgress*> all() const;

 private:
  /// Open addressing; the size is a power of two and at most half of it is in use.
  struct Table {
    explicit Table(std::size_t size) : slots(size) {}
    std::vector<std::atomic<PartitionProgress*>> slots;
  };

  static std::atomic<PartitionProgress*>& slot(Table& table, std::string_view topic,
                                               std::int32_t partition);

  std::atomic<Table*> current_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;               // guarded by mutex_
  std::vector<std::unique_ptr<PartitionProgress>> entries_;  // guarded by mutex_
};

}  // namespace pawl::ops
