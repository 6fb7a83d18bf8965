#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ops/log_line.hpp"
#include "ops/outages.hpp"
#include "ops/progress.hpp"
#include "ops/repeat_limiter.hpp"
#include "ops/ticker.hpp"
#include "pawl/consumer.hpp"
#include "pawl/handler.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"

namespace pawl::ops {

/// The program that runs, as its first line has it.
struct Started {
  std::string name;
  std::string version;
};

/// Writes events to stderr, as text or as JSON: start, assignments, halts, warnings (one per
/// incident and minute), outages, progress. Payloads never; keys at level debug, and of halts.
///
/// Created by `run`, shared with the consumer, called from all of its threads. Per message it only
/// adds to atomics. A thread of its own writes the progress line, for which it reads the consumer's
/// partitions, and the counts of suppressed lines.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(const Options& options);
  ~LogObserver() override = default;
  LogObserver(const LogObserver&) = delete;
  LogObserver& operator=(const LogObserver&) = delete;

  /// One line of facts, and details at level debug. `consumer` must live until ended() or failed()
  /// has returned, because its progress is reported.
  void starting(const Started& program, const Options& options, const Registry& registry,
                const Consumer& consumer);
  /// The same of a process that publishes the outbox, and has no consumer.
  void relaying(const Started& program, const Options& options);
  /// It stops; `drained`: because no message waits.
  void relayed(bool drained);
  void stopping(const std::string& signal);
  /// The configuration was read again. The process restarts with it, or continues unchanged.
  void reloading();
  void not_reloaded(const std::string& problem);
  void ended(RunResult result);
  void failed(const std::string& reason);

  void on_event(const Event& event) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  void handle(const Event& event);
  bool note(const Event& event);
  void write_limited(const Event& event, LogLine line);
  void report_outage(const Event& event);

  void tick() noexcept;
  void serve();
  void report_held(Clock::time_point now, bool all);
  void report_suppressed(const std::vector<RepeatLimiter::Held>& held);
  void report_ended(Clock::time_point now, bool all = false);
  void finish_reports();
  void report_progress(Clock::time_point now);
  void report_relayed(Clock::time_point now, std::chrono::milliseconds passed);

  const InvocationOptions invocation_;
  const std::chrono::milliseconds progress_interval_;
  const LogWriter log_;

  Counters counters_;
  RelayCounters relay_counters_;
  RepeatLimiter repeats_;
  Outages outages_;

  std::mutex drained_mutex_;
  std::string left_behind_;  // guarded by drained_mutex_; of Step::kDrainFinished

  const Consumer* consumer_ = nullptr;  // ticker thread once it runs; null: there is none
  Clock::time_point started_;           // ticker thread once it runs
  Clock::time_point last_progress_at_;  // ticker thread
  Progress last_progress_;              // ticker thread
  Relayed last_relayed_;                // ticker thread
  Ticker ticker_;  // the last one: it is stopped before anything that it uses goes
};

}  // namespace pawl::ops
