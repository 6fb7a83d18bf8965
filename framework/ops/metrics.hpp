#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "ops/histogram.hpp"
#include "ops/progress.hpp"
#include "ops/series.hpp"
#include "pawl/observer.hpp"

namespace pawl::ops {

/// What is counted of each partition, since the process began.
enum class Tally {
  kApplied,
  kUnchecked,
  kDuplicates,
  kSkipped,
  kDead,
  kParked,
  kRetryScheduled,
  kRetrySucceeded,
  kConflicts,
  kCommitOutcomeUnknown,
  kFenced,
  kReacquired,
  kHalts,
};
inline constexpr std::size_t kTallies = static_cast<std::size_t>(Tally::kHalts) + 1;

/// Counts what is told of the engine, for whoever asks now and then (ops/metrics_text.hpp).
///
/// Made by `run` where [monitoring] asks for it, shared with the consumer, called from all of its
/// threads: for a message it reads no clock, adds to some atomics, and as a rule takes no lock.
class MetricsObserver final : public Observer {
 public:
  using Counter = std::atomic<std::uint64_t>;

  /// What events say of a partition.
  struct Partition {
    explicit Partition(Histogram& times) : since_fetched(times) {}

    std::array<Counter, kTallies> tallies{};
    Histogram& since_fetched;           ///< its topic's
    std::atomic<bool> fresh{false};     ///< assigned, and not acquired yet
    std::atomic<bool> standing{false};  ///< halted or paused, when that was told last

    void count(Tally tally) {
      tallies[static_cast<std::size_t>(tally)].fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t read(Tally tally) const {
      return tallies[static_cast<std::size_t>(tally)].load(std::memory_order_relaxed);
    }
  };

  /// Whether a server answers.
  enum class Reached { kUnknown, kNo, kYes };

  /// `outbox_alert_age`: of the configuration.
  explicit MetricsObserver(std::chrono::milliseconds outbox_alert_age = {});

  void on_event(const Event& event) noexcept override;
  [[nodiscard]] bool watches_times() const noexcept override { return true; }

  // For who tells of it, from any thread:
  [[nodiscard]] const Series<Partition>& partitions() const { return partitions_; }
  /// Failed attempts by topic, followed by the reason, and by partition.
  [[nodiscard]] const Series<Counter>& failed_attempts() const { return failed_attempts_; }
  [[nodiscard]] const Series<Counter>& warnings() const { return warnings_; }
  [[nodiscard]] const Series<Histogram>& since_fetched() const { return since_fetched_; }
  [[nodiscard]] const Series<Histogram>& handlers() const { return handlers_; }
  [[nodiscard]] const Histogram& commits() const { return commits_; }
  [[nodiscard]] const Histogram& pipelines() const { return pipelines_; }
  [[nodiscard]] const Histogram& batches() const { return batches_; }
  [[nodiscard]] std::uint64_t connections_lost() const { return connections_lost_; }
  [[nodiscard]] std::uint64_t leases_lost() const { return leases_lost_; }
  [[nodiscard]] Reached database() const { return database_; }
  /// Another database responds at postgres.url.
  [[nodiscard]] bool wrong_database() const { return wrong_database_; }
  [[nodiscard]] Reached kafka() const { return kafka_; }
  [[nodiscard]] Reached redis() const { return redis_; }
  /// A shard of the outbox was this process's.
  [[nodiscard]] bool relays() const { return relays_; }
  /// Whether its oldest message waits for longer than it may; nullopt as below.
  [[nodiscard]] std::optional<bool> outbox_late(std::chrono::steady_clock::time_point now) const;
  /// For how long the outbox's oldest message waits, where this process looks for all of a
  /// database; nullopt: it does not, or has not lately.
  [[nodiscard]] std::optional<std::chrono::milliseconds> outbox_waits(
      std::chrono::steady_clock::time_point now) const;
  [[nodiscard]] Relayed relayed() const { return outbox_.read(); }

 private:
  void note(const Event& event);
  void note_partition(const Event& event);
  void note_time(const Event& event, Partition& partition);
  Partition& partition_of(const Event& event);

  const std::chrono::milliseconds outbox_alert_age_;
  Series<Histogram> since_fetched_;  ///< by topic; before partitions_, which refer to them
  Series<Partition> partitions_;
  Series<Counter> failed_attempts_;
  Series<Counter> warnings_;
  Series<Histogram> handlers_;
  Histogram commits_;
  Histogram pipelines_;
  Histogram batches_;
  Counter connections_lost_{0};
  Counter leases_lost_{0};
  std::atomic<Reached> database_{Reached::kUnknown};
  std::atomic<bool> wrong_database_{false};
  std::atomic<Reached> kafka_{Reached::kUnknown};
  std::atomic<Reached> redis_{Reached::kUnknown};
  RelayCounters outbox_;
  std::atomic<bool> relays_{false};
  struct Seen {
    std::chrono::milliseconds waits;
    std::chrono::steady_clock::time_point at;
  };
  mutable std::mutex outbox_seen_mutex_;
  std::optional<Seen> outbox_seen_;  // guarded by outbox_seen_mutex_
};

}  // namespace pawl::ops
