#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/catching_up.hpp"
#include "ops/log_line.hpp"
#include "pawl/consumer.hpp"
#include "pawl/observer.hpp"

namespace pawl::ops {

/// Messages since the process began.
struct Counts {
  std::uint64_t processed = 0;  ///< behind, however that ended
  std::uint64_t duplicates = 0;
  std::uint64_t skipped = 0;
  std::uint64_t dead = 0;
  std::uint64_t parked = 0;
  std::uint64_t later = 0;   ///< tries after which one was put off for later
  std::uint64_t failed = 0;  ///< tries, without those that wait for a lock or for room
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// Counts by what is told of each message; from any thread, without a lock.
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
  std::atomic<std::uint64_t> later_{0};
  std::atomic<std::uint64_t> failed_{0};
};

/// Where the partitions that are assigned stand, taken together.
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

/// A server that cannot be used now.
struct Unreachable {
  std::string_view server;
  std::chrono::seconds lasts{0};
  std::string why;  ///< the latest reason
};

/// The line of the log that says what has been done since `before`, in `passed`, at least 1 ms.
[[nodiscard]] LogLine progress_line(const Progress& before, const Progress& now,
                                    std::chrono::milliseconds passed,
                                    const std::vector<Unreachable>& unreachable = {});

/// What a process that publishes the outbox has done since it began.
struct Relayed {
  std::int64_t published = 0;  ///< messages
  std::int64_t refused = 0;    ///< by Kafka, and set apart
  std::int64_t lanes = 0;      ///< that are its own now
  std::int64_t left_out = 0;   ///< topic partitions that it cannot write to now
  friend bool operator==(const Relayed&, const Relayed&) = default;
};

/// Counts by what is told of the outbox; from any thread, without a lock.
class RelayCounters {
 public:
  void count(const Event& event);
  [[nodiscard]] Relayed read() const {
    return {published_.load(), refused_.load(), lanes_.load(), left_out_.load()};
  }

 private:
  std::atomic<std::int64_t> published_{0};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::int64_t> lanes_{0};
  std::atomic<std::int64_t> left_out_{0};
};

/// As progress_line(), of a process that publishes the outbox.
[[nodiscard]] LogLine relayed_line(const Relayed& before, const Relayed& now,
                                   std::chrono::milliseconds passed);

/// ", 3 dead-lettered and 2 parked since the start"; what most consumers never have is said only
/// where it is so.
[[nodiscard]] std::string set_aside_text(const Counts& counts);

}  // namespace pawl::ops
