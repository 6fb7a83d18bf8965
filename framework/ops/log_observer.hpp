#pragma once

#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ops/log_line.hpp"
#include "ops/partition_table.hpp"
#include "ops/repeat_limiter.hpp"
#include "pawl/consumer.hpp"
#include "pawl/handler.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"

namespace pawl::ops {

/// Writes what happens to stderr, for people or as JSON: start, assignments, halts, warnings (the
/// same one at most once a minute), outages, progress. Payloads never; keys at level debug.
///
/// Made by `run`, shared with the consumer, called from all of its threads. Per message it only
/// adds to atomics; a thread of its own writes the progress line and what was held back.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(const Options& options);
  ~LogObserver() override;
  LogObserver(const LogObserver&) = delete;
  LogObserver& operator=(const LogObserver&) = delete;

  /// What, where, and which guarantee. `program` is a name with a version.
  void starting(const std::string& program, const Options& options, const Registry& registry);
  void stopping(const std::string& signal);
  void ended(RunResult result);
  void failed(const std::string& reason);

  void on_event(const Event& event) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Counts {
    std::uint64_t processed = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t skipped = 0;
    std::uint64_t dead = 0;
    std::uint64_t parked = 0;
    std::uint64_t failed = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  /// Of the partitions that this process owns now.
  struct Position {
    std::int64_t partitions = 0;
    std::int64_t halted = 0;
    std::int64_t paused = 0;
    std::int64_t lag = 0;
    bool lag_known = true;
    friend bool operator==(const Position&, const Position&) = default;
  };

  void handle(const Event& event);
  void processed(const Event& event);
  void follow(const Event& event);
  void line(spdlog::level::level_enum level, const Event& event, std::string text);
  void limited(spdlog::level::level_enum level, const Event& event, const std::string& text);
  void connection_lost(const Event& event);
  void connection_made(const Event& event);
  void say(spdlog::level::level_enum level, std::string_view event, std::string text);

  void tick();
  void serve();
  void report_held(Clock::time_point now, bool all);
  void report_connection(Clock::time_point now);
  void report_progress(Clock::time_point now);
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] static std::string set_aside(const Counts& counts);
  [[nodiscard]] Position position() const;
  [[nodiscard]] LogLine progress_line(const Counts& total, const Position& at,
                                      std::chrono::milliseconds passed) const;
  [[nodiscard]] std::string partitions_text(const Position& position) const;

  const std::string group_;
  const LogFormat format_;
  const std::chrono::milliseconds progress_interval_;
  const std::shared_ptr<spdlog::logger> log_;

  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> duplicates_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<std::uint64_t> dead_{0};
  std::atomic<std::uint64_t> parked_{0};
  std::atomic<std::uint64_t> failed_{0};
  PartitionTable partitions_;
  RepeatLimiter repeats_;

  std::mutex outage_mutex_;
  std::optional<Clock::time_point> away_since_;  // guarded by outage_mutex_
  std::optional<Clock::time_point> back_since_;  // guarded by outage_mutex_

  std::mutex drained_mutex_;
  std::string left_behind_;  // guarded by drained_mutex_; of Step::kDrained

  Clock::time_point started_;        // ticker thread once it runs
  Clock::time_point last_progress_;  // ticker thread
  Counts last_counts_;               // ticker thread
  Position last_position_;           // ticker thread
  std::atomic<bool> kafka_away_{false};
  bool assigned_once_ = false;  // ticker thread

  std::mutex tick_mutex_;
  std::condition_variable tick_changed_;
  bool ending_ = false;  // guarded by tick_mutex_
  std::thread ticker_;
};

}  // namespace pawl::ops
