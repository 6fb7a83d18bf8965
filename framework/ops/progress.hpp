#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/catching_up.hpp"
#include "ops/log_line.hpp"
#include "ops/outages.hpp"
#include "pawl/condition.hpp"
#include "pawl/consumer.hpp"
#include "pawl/observer.hpp"

namespace pawl::ops {

/// Messages since the process started.
struct Counts {
  std::uint64_t processed = 0;  ///< however that ended
  std::uint64_t duplicates = 0;
  std::uint64_t skipped = 0;
  std::uint64_t dead = 0;
  std::uint64_t parked = 0;
  std::uint64_t scheduled = 0;  ///< times that a retry was scheduled
  std::uint64_t failed = 0;     ///< attempts, without those that wait for a lock or for resources
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Counts the events of messages; from any thread, without a lock.
class Counters {
 public:
  void count(const Event& event);
  [[nodiscard]] Counts read() const;

 private:
  std::atomic<std::uint64_t> processed_{0};
  std::atomic<std::uint64_t> duplicates_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint64_t> dead_{0};
  std::atomic<std::uint64_t> parked_{0};
  std::atomic<std::uint64_t> scheduled_{0};
  std::atomic<std::uint64_t> failed_{0};
};

/// The assigned partitions together.
struct Standing {
  std::int64_t partitions = 0;
  std::int64_t halted = 0;
  std::int64_t paused = 0;
  std::optional<std::int64_t> lag =
      std::nullopt;  ///< messages; nullopt: not known of each, or none
  friend bool operator==(const Standing&, const Standing&) = default;
};
[[nodiscard]] Standing standing(const std::vector<PartitionSnapshot>& partitions);
/// The same of each.
[[nodiscard]] Places places(const std::vector<PartitionSnapshot>& partitions);

struct Progress {
  Counts counts = {};
  Standing at = {};
  bool assigned_once = false;  ///< some partition was assigned, by now or before
  Places places = {};
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// "progress_reported": what was done since `before`, in `passed`, at least 1 ms. Of the lasting
/// `conditions` the first three are named; Kafka is one of `unreachable`.
[[nodiscard]] LogLine progress_line(const Progress& before, const Progress& now,
                                    std::chrono::milliseconds passed,
                                    const std::vector<Unreachable>& unreachable = {},
                                    const std::vector<Condition>& conditions = {});

/// What a process that publishes the outbox has done since it started.
struct Relayed {
  std::int64_t published = 0;   ///< messages
  std::int64_t rejected = 0;    ///< messages, by Kafka
  std::int64_t shards = 0;      ///< that it publishes now
  std::int64_t unwritable = 0;  ///< topic partitions that it cannot write to now
  friend bool operator==(const Relayed&, const Relayed&) = default;
};

/// Counts the events of the outbox; from any thread, without a lock.
class RelayCounters {
 public:
  void count(const Event& event);
  [[nodiscard]] Relayed read() const {
    return {published_.load(), rejected_.load(), shards_.load(), unwritable_.load()};
  }

 private:
  std::atomic<std::int64_t> published_{0};
  std::atomic<std::int64_t> rejected_{0};
  std::atomic<std::int64_t> shards_{0};
  std::atomic<std::int64_t> unwritable_{0};
};

/// The same of a process that publishes the outbox.
[[nodiscard]] LogLine relayed_line(const Relayed& before, const Relayed& now,
                                   std::chrono::milliseconds passed,
                                   const std::vector<Unreachable>& unreachable = {});

/// "consumer_stopped", after `took`, without its text.
[[nodiscard]] LogLine stopped_line(const Counts& counts, std::chrono::seconds took);

}  // namespace pawl::ops
