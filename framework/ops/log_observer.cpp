#include "ops/log_observer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "config/invocation.hpp"
#include "config/redact.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/router.hpp"
#include "ops/alerts_message.hpp"
#include "ops/event_table.hpp"
#include "ops/step_lines.hpp"
#include "postgres/connect_advice.hpp"

namespace pawl::ops {
namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::milliseconds kRepeatInterval{60000};
constexpr std::chrono::milliseconds kOutageQuiet{1000};

LogLine line_of(std::string_view code) {
  return {event_row(code).level, event_row(code).code};
}

std::string list(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ","));
}

/// The handlers whose messages share something.
std::vector<std::string> handlers_in(const handlers::Router& router, handlers::Grouping grouping) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < router.bindings().size(); ++i) {
    if (router.plans().grouping(i) == grouping)
      names.push_back(router.bindings()[i]->label);
  }
  return names;
}

std::string guarantee_of(const Options& options, const handlers::Router& router) {
  const bool unchecked = std::any_of(
      options.handlers.begin(), options.handlers.end(), [&](const HandlerOptions& handler) {
        return handler.missing_key.value_or(options.idempotency.missing_key) ==
               MissingKey::kProcess;
      });
  const bool calls = std::ranges::any_of(router.plans().by_entry,
                                         [](const auto& entry) { return entry.second.calls; });
  std::vector<std::string> not_atomic;
  for (const auto& handler : options.handlers)
    not_atomic.insert(not_atomic.end(), handler.not_atomic.begin(), handler.not_atomic.end());
  std::string text = "each message is one transaction of key, effects, and offset";
  if (!not_atomic.empty())
    text += fmt::format(". Effects of {} are applied at least once (not_atomic)",
                        fmt::join(not_atomic, ", "));
  if (calls)
    text += ". External calls are made under a lease, and their outcome is recorded once";
  if (unchecked)
    text += ". Messages without a key are applied unchecked (missing_key = \"process\")";
  if (options.consumer.durability == Durability::kReplayable)
    text += fmt::format(
        ". A crash of PostgreSQL may lose commits of the last {} ms, which are applied again "
        "(durability = \"replayable\")",
        options.consumer.durability_interval.count());
  return text;
}

/// Where a process runs, and against what.
void add_facts(LogLine& line, const Options& options) {
  line.add_text("kafka", options.kafka.bootstrap_servers);
  line.add_text("postgres", config::short_url(options.postgres.url));
  line.add_text("schema", options.postgres.schema);
}

std::string database_outage_text(std::string_view cause) {
  return fmt::format("{}. Messages wait. {}", cause,
                     postgres::correction(cause).empty()
                         ? "pawl retries until it can be used"
                         : "pawl retries, and fails until you fix the cause");
}

std::chrono::seconds seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration);
}

const char* meaning(RunResult result) {
  switch (result) {
    case RunResult::kStopped:
      return "all in-flight messages finished";
    case RunResult::kFatal:
      return "the consumer failed";
    case RunResult::kHaltedPartitions:
      return "some partitions are not drained";
    case RunResult::kShutdownTimeout:
      return "in-flight messages were abandoned, and are processed again after a restart";
    case RunResult::kHung:
      return "a handler did not return";
  }
  return "";
}

}  // namespace

LogObserver::LogObserver(const Options& options)
    : invocation_(options.invocation),
      progress_interval_(options.log.progress_interval),
      log_(options),
      repeats_(kRepeatInterval),
      outages_(kOutageQuiet),
      started_(Clock::now()),
      last_progress_at_(started_) {}

void LogObserver::starting(const Started& program, const Options& options, const Registry& registry,
                           const Consumer& consumer) {
  const handlers::Router router(options, registry);
  auto line = line_of("consumer_started");
  line.add_text("program", program.name == "pawl" ? "" : program.name);
  line.add_text("version", program.version);
  line.add_text("group", options.kafka.group);
  line.add_text("instance", alert_sender(options).instance);
  line.add_text("topics", list(router.topics()));
  add_facts(line, options);
  if (options.consumer.drain)
    line.add("drain", true);
  log_.write(std::move(line));

  auto guarantee = line_of("guarantee_configured");
  guarantee.text = guarantee_of(options, router);
  log_.write(std::move(guarantee));
  const auto group = [&](std::string_view code, handlers::Grouping grouping, std::string_view most,
                         std::size_t number) {
    const auto names = handlers_in(router, grouping);
    if (names.empty())
      return;
    auto details = line_of(code);
    details.add_text("handlers", list(names));
    details.add(most, static_cast<std::int64_t>(number));
    log_.write(std::move(details));
  };
  group("pipeline_configured", handlers::Grouping::kPipeline, "max_transactions",
        options.consumer.pipeline);
  group("batch_configured", handlers::Grouping::kBatch, "max_messages", options.batch.max_messages);
  for (const auto& note : router.plans().notes) {
    auto details = line_of("topic_configured");
    details.text = note;
    log_.write(std::move(details));
  }
  consumer_ = &consumer;
  started_ = last_progress_at_ = Clock::now();
  ticker_.start(kTick, [this] { tick(); });
}

void LogObserver::relaying(const Started& program, const Options& options) {
  auto line = line_of("relay_started");
  line.add_text("program", program.name == "pawl" ? "" : program.name);
  line.add_text("version", program.version);
  line.add_text("instance", alert_sender(options).instance);
  add_facts(line, options);
  log_.write(std::move(line));
  started_ = last_progress_at_ = Clock::now();
  ticker_.start(kTick, [this] { tick(); });
}

void LogObserver::relayed(bool drained) {
  finish_reports();
  const auto total = relay_counters_.read();
  auto line = line_of("relay_stopped");
  line.add("published", total.published);
  line.add("rejected", total.rejected);
  line.add("duration_s", std::int64_t{seconds(Clock::now() - started_).count()});
  line.text = drained ? "no message waits in the outbox" : "all in-flight messages finished";
  log_.write(std::move(line));
}

void LogObserver::stopping(const std::string& signal) {
  auto line = line_of("shutdown_requested");
  line.add_text("signal", signal);
  line.text = "finishing the messages in flight. A second signal stops the process at once";
  log_.write(std::move(line));
}

void LogObserver::reloading() {
  auto line = line_of("configuration_reloaded");
  line.text =
      "SIGHUP arrived and the configuration is valid. Finishing the messages in flight, then "
      "restarting with it";
  log_.write(std::move(line));
}

void LogObserver::not_reloaded(const std::string& problem) {
  auto line = line_of("configuration_rejected");
  line.text = fmt::format(
      "SIGHUP arrived but the configuration is not valid, so nothing changes: {}", problem);
  log_.write(std::move(line));
}

void LogObserver::ended(RunResult result) {
  finish_reports();
  auto line = stopped_line(counters_.read(), seconds(Clock::now() - started_));
  if (result != RunResult::kStopped)
    line.level = spdlog::level::warn;
  line.text = meaning(result);
  if (result == RunResult::kHaltedPartitions) {
    const std::scoped_lock lock(drained_mutex_);
    line.text += fmt::format(": {}. Show the causes:\n  {}", left_behind_,
                             command_text(invocation_, "status"));
  }
  log_.write(std::move(line));
}

void LogObserver::failed(const std::string& reason) {
  finish_reports();
  auto line = line_of("consumer_failed");
  line.text = reason;
  log_.write(std::move(line));
}

void LogObserver::on_event(const Event& event) noexcept {
  try {
    handle(event);
  } catch (const std::exception&) {
    // Out of memory, or stderr is gone: a log that cannot be written stops nothing.
    return;
  }
}

void LogObserver::handle(const Event& event) {
  if (note(event))
    return;
  // Most events are of messages that went well: nothing is formatted for them.
  if (!log_.writes(event_row(event).level))
    return;
  auto line = ops::line_of(event, invocation_);
  if (!line || !log_.writes(line->level))
    return;
  // What led there is written before it, and not a minute later.
  if (event.step == Step::kPartitionHalted || event.step == Step::kPartitionRevoked) {
    const auto now = Clock::now();
    report_suppressed(repeats_.take_held_of(event.topic, now));
  }
  write_limited(event, *std::move(line));
}

void LogObserver::write_limited(const Event& event, LogLine line) {
  if (line.level >= spdlog::level::warn && is_limited(event) &&
      !repeats_.admit(incident_of(event), Clock::now()))
    return;
  log_.write(std::move(line));
}

/// True: the line of the event, if it has one, is written.
bool LogObserver::note(const Event& event) {
  counters_.count(event);
  relay_counters_.count(event);
  switch (event.step) {
    case Step::kDatabaseConnected:
      report_outage(event);
      return false;
    case Step::kDatabaseDisconnected:
    case Step::kDatabaseUnreachable:
    case Step::kDatabaseReachable:
    case Step::kKafkaUnreachable:
    case Step::kKafkaReachable:
    case Step::kRedisUnreachable:
    case Step::kRedisReachable:
      report_outage(event);
      return true;
    case Step::kDrainFinished: {
      const std::scoped_lock lock(drained_mutex_);
      left_behind_ = event.detail;
      return true;
    }
    default:
      return false;
  }
}

/// serve() reports the end of an outage.
void LogObserver::report_outage(const Event& event) {
  if (!outages_.note(event, Clock::now()))
    return;
  const bool of_database =
      event.step == Step::kDatabaseDisconnected || event.step == Step::kDatabaseUnreachable;
  auto line = line_of(to_string(of_database ? Step::kDatabaseUnreachable : event.step));
  line.text = of_database ? database_outage_text(event.detail) : event_text(event, invocation_);
  log_.write(std::move(line));
}

void LogObserver::tick() noexcept {
  try {
    serve();
  } catch (const std::exception&) {
    // As in on_event().
    return;
  }
}

void LogObserver::serve() {
  const auto now = Clock::now();
  report_ended(now);
  report_held(now, false);
  if (progress_interval_.count() > 0 && now - last_progress_at_ >= progress_interval_) {
    report_progress(now);
  }
}

/// The process stops: no later tick reports what is due.
void LogObserver::finish_reports() {
  ticker_.stop();
  const auto now = Clock::now();
  report_ended(now, true);
  report_held(now, true);
}

void LogObserver::report_held(Clock::time_point now, bool all) {
  report_suppressed(repeats_.take_held(now, all));
}

void LogObserver::report_suppressed(const std::vector<RepeatLimiter::Held>& held) {
  for (const auto& [incident, lines, period] : held) {
    auto line = line_of("log_lines_suppressed");
    line.add("lines", static_cast<std::int64_t>(lines));
    line.add("period_s", std::int64_t{seconds(period).count()});
    line.add_text("suppressed_event", incident.event);
    line.add_text("topic", incident.topic);
    line.add_text("handler", incident.handler);
    line.add_text("sqlstate", incident.sqlstate);
    line.text = incident.text;
    log_.write(std::move(line));
  }
}

void LogObserver::report_ended(Clock::time_point now, bool all) {
  for (const auto& [step, lasted] : outages_.take_ended(now, all)) {
    auto line = line_of(to_string(step));
    line.add("outage_s", std::int64_t{seconds(lasted).count()});
    log_.write(std::move(line));
  }
}

/// A process without a shard is not silent.
void LogObserver::report_relayed(Clock::time_point now, std::chrono::milliseconds passed) {
  const auto relayed = relay_counters_.read();
  const auto unreachable = outages_.standing(now);
  if (relayed.shards == 0 || !unreachable.empty() || relayed != last_relayed_)
    log_.write(relayed_line(last_relayed_, relayed, passed, unreachable));
  last_relayed_ = relayed;
}

void LogObserver::report_progress(Clock::time_point now) {
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - last_progress_at_);
  if (consumer_ == nullptr) {
    report_relayed(now, passed);
    last_progress_at_ = now;
    return;
  }
  const auto partitions = consumer_->partitions();
  Progress progress{counters_.read(), standing(partitions), false, places(partitions)};
  progress.assigned_once = last_progress_.assigned_once || progress.at.partitions > 0;
  // A consumer that waits for something is not silent; one that has nothing to do is.
  const auto& at = progress.at;
  const auto unreachable = outages_.standing(now);
  const bool waits = !progress.assigned_once || !unreachable.empty() || at.halted > 0 ||
                     at.paused > 0 || at.lag.value_or(0) > 0;
  if (waits || progress != last_progress_) {
    log_.write(
        progress_line(last_progress_, progress, passed, unreachable, consumer_->conditions()));
  }
  last_progress_ = progress;
  last_progress_at_ = now;
}

}  // namespace pawl::ops
