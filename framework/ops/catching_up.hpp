#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pawl/topic_partition.hpp"

namespace pawl::ops {

/// Where one look found a partition.
struct Place {
  std::optional<std::int64_t> next;  ///< offset of the next message; nullopt: not known
  std::optional<std::int64_t> lag;   ///< messages; nullopt: not known
  /// Its next message is not processed by itself, or fails: it is halted, paused, or retrying.
  bool stands = false;
  friend bool operator==(const Place&, const Place&) = default;
};
using Places = std::map<TopicPartition, Place>;

/// When the lag is gone that a partition has `now`, `elapsed` after it was at `before`, if it goes
/// on shrinking like that; rounded up. 0: it is gone. Nullopt: it does not shrink, the partition
/// stands, no time has passed, or something is not known.
[[nodiscard]] std::optional<std::int64_t> seconds_to_catch_up(const Place& before, const Place& now,
                                                              std::chrono::milliseconds elapsed);
/// The same of all partitions of `now`: the last of them ends it. Nullopt also where a single one
/// has a lag and does not move, or was not there before, and of no partition.
[[nodiscard]] std::optional<std::int64_t> seconds_to_catch_up(const Places& before,
                                                              const Places& now,
                                                              std::chrono::milliseconds elapsed);

/// "45 s", "3 min", "2 h 5 min", "4 d 2 h"
[[nodiscard]] std::string span_text(std::int64_t seconds);

}  // namespace pawl::ops
