#pragma once

#include <spdlog/spdlog.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "ops/log_line.hpp"
#include "ops/outage.hpp"
#include "ops/progress.hpp"
#include "ops/repeat_limiter.hpp"
#include "ops/ticker.hpp"
#include "pawl/consumer.hpp"
#include "pawl/handler.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"

namespace pawl::ops {

/// Writes what happens to stderr, for people or as JSON: start, assignments, halts, warnings (the
/// same one at most once a minute), outages, progress. Payloads never; keys at level debug.
///
/// Made by `run`, shared with the consumer, called from all of its threads. Per message it only
/// adds to atomics; a thread of its own writes the progress line, for which it looks at the
/// consumer's partitions, and what was held back.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(const Options& options);
  ~LogObserver() override = default;
  LogObserver(const LogObserver&) = delete;
  LogObserver& operator=(const LogObserver&) = delete;

  /// What, where, and which guarantee. `program` is a name with a version. `consumer` must live
  /// until ended() or failed() has returned: the progress is its.
  void starting(const std::string& program, const Options& options, const Registry& registry,
                const Consumer& consumer);
  /// The same of a process that publishes the outbox, and has no consumer.
  void relaying(const std::string& program, const Options& options);
  /// The end of such a one; `drained`: since nothing waits any more.
  void relayed(bool drained);
  void stopping(const std::string& signal);
  /// The configuration was read again, and the process begins anew with it, or goes on as it is.
  void reloading();
  void not_reloaded(const std::string& problem);
  void ended(RunResult result);
  void failed(const std::string& reason);

  void on_event(const Event& event) noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  void handle(const Event& event);
  void note(const Event& event);
  void line(spdlog::level::level_enum level, const Event& event, std::string text);
  void limited(spdlog::level::level_enum level, const Event& event, const std::string& text);
  void connection_lost(const Event& event);
  void other_reason(const Event& event);
  void connection_made(const Event& event);
  void say(spdlog::level::level_enum level, std::string_view event, std::string text);

  void tick() noexcept;
  void serve();
  void report_held(Clock::time_point now, bool all);
  void say_held(const std::vector<RepeatLimiter::Held>& texts, Clock::time_point now);
  void report_connection(Clock::time_point now);
  void report_progress(Clock::time_point now);
  void report_relayed(std::chrono::milliseconds passed);

  const std::string group_;
  const std::string status_command_;  ///< as it can be pasted
  const LogFormat format_;
  const std::chrono::milliseconds progress_interval_;
  const std::shared_ptr<spdlog::logger> log_;

  Counters counters_;
  RelayCounters relay_counters_;
  RepeatLimiter repeats_;
  Outage outage_;  ///< of PostgreSQL
  Outage kafka_outage_;

  std::mutex drained_mutex_;
  std::string left_behind_;  // guarded by drained_mutex_; of Step::kDrained

  const Consumer* consumer_ = nullptr;  // ticker thread once it runs; null: there is none
  Clock::time_point started_;           // ticker thread once it runs
  Clock::time_point last_progress_at_;  // ticker thread
  Progress last_progress_;              // ticker thread
  Relayed last_relayed_;                // ticker thread
  Ticker ticker_;  // the last one: it is stopped before anything that it uses goes
};

}  // namespace pawl::ops
