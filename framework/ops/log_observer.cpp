#include "ops/log_observer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "config/invocation.hpp"
#include "config/letter_advice.hpp"
#include "config/redact.hpp"
#include "handlers/handler_statement.hpp"
#include "handlers/router.hpp"
#include "ops/step_lines.hpp"
#include "postgres/connect_advice.hpp"

namespace pawl::ops {
namespace {

using spdlog::level::level_enum;

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::milliseconds kRepeatInterval{60000};
constexpr std::chrono::milliseconds kConnectionQuiet{1000};

/// The handlers whose messages do not go one by one: they share transactions, or the way to the
/// server. And what one would not expect of a handler because of the others of its topics.
std::string together(const Options& options, const handlers::Router& router) {
  std::vector<std::string> batches;
  std::vector<std::string> pipelines;
  const auto& plans = router.plans();
  for (std::size_t i = 0; i < router.bindings().size(); ++i) {
    const auto name = handlers::handler_text(router.bindings()[i]->label);
    if (plans.grouping(i) == handlers::Grouping::kBatch)
      batches.push_back(name);
    if (plans.grouping(i) == handlers::Grouping::kPipeline)
      pipelines.push_back(name);
  }
  std::string text;
  if (!batches.empty()) {
    text += fmt::format("; up to {} messages of {} share one transaction",
                        options.batch.max_messages, fmt::join(batches, ", "));
  }
  if (!pipelines.empty()) {
    text += fmt::format("; up to {} transactions of {} travel to PostgreSQL at once",
                        options.consumer.pipeline, fmt::join(pipelines, ", "));
  }
  for (const auto& note : plans.notes)
    text += fmt::format("; {}", note);
  return text;
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
  return fmt::format(
      "each message is one transaction of key, effects and offset: one effect per key{}{}{}{}",
      not_atomic.empty()
          ? ""
          : fmt::format(" (at least once through {}: not_atomic)", fmt::join(not_atomic, ", ")),
      calls ? " in this database (calls to the outside are made under a lease, and recorded once)"
            : "",
      unchecked ? " (messages without a key are applied unchecked: missing_key = \"process\")" : "",
      options.consumer.durability == Durability::kReplayable
          ? fmt::format(
                "; durability = \"replayable\": a crash of PostgreSQL may take back commits "
                "of the last {} ms, which are made again",
                options.consumer.durability_interval.count())
          : "");
}

/// `begins`: the first line of an outage.
std::string outage_text(bool begins, std::string_view why) {
  return fmt::format(
      "PostgreSQL is {}: {}. Nothing is fetched meanwhile. {}", begins ? "away" : "still away", why,
      postgres::needs_correction(why) ? "pawl tries again, and fails until you correct that"
                                      : "pawl tries again until it is back");
}

/// "payments [3]: "; empty where it is about none.
std::string place_text(const Event& event) {
  return event.topic.empty() ? "" : fmt::format("{} [{}]: ", event.topic, event.partition);
}

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

const char* meaning(RunResult result) {
  switch (result) {
    case RunResult::kStopped:
      return "stopped, everything in hand is finished";
    case RunResult::kFatal:
      return "failed";
    case RunResult::kHaltedPartitions:
      return "drained, but not to the end";
    case RunResult::kShutdownTimeout:
      return "stopped, what was in hand was abandoned and runs again";
    case RunResult::kHung:
      return "ended, since a handler did not return";
  }
  return "ended";
}

}  // namespace

LogObserver::LogObserver(const Options& options)
    : group_(options.kafka.group),
      status_command_(command_text(options.invocation, "status")),
      format_(options.log.format),
      progress_interval_(options.log.progress_interval),
      log_(make_logger(options.log)),
      repeats_(kRepeatInterval),
      outage_(kConnectionQuiet),
      kafka_outage_(std::chrono::milliseconds{0}),
      started_(Clock::now()),
      last_progress_at_(started_) {}

void LogObserver::say(level_enum level, std::string_view event, std::string text) {
  LogLine line;
  line.level = level;
  line.event = event;
  line.text = std::move(text);
  write(*log_, format_, group_, line);
}

void LogObserver::starting(const std::string& program, const Options& options,
                           const Registry& registry, const Consumer& consumer) {
  const handlers::Router router(options, registry);
  say(spdlog::level::info, "starting",
      fmt::format("{}: group {} consumes {} from {} into {} (schema {}){}; {}{}", program, group_,
                  fmt::join(router.topics(), ", "), options.kafka.bootstrap_servers,
                  config::redact_url(options.postgres.url), options.postgres.schema,
                  options.consumer.drain ? ", until drained" : "", guarantee_of(options, router),
                  together(options, router)));
  consumer_ = &consumer;
  started_ = last_progress_at_ = Clock::now();
  ticker_.start(kTick, [this] { tick(); });
}

void LogObserver::relaying(const std::string& program, const Options& options) {
  say(spdlog::level::info, "starting",
      fmt::format("{}: publishes the outbox of {} (schema {}) to {}", program,
                  config::redact_url(options.postgres.url), options.postgres.schema,
                  options.kafka.bootstrap_servers));
  started_ = last_progress_at_ = Clock::now();
  ticker_.start(kTick, [this] { tick(); });
}

void LogObserver::relayed(bool drained) {
  ticker_.stop();
  report_held(Clock::now(), true);
  const auto total = relay_counters_.read();
  say(spdlog::level::info, "ended",
      fmt::format(
          "{}; {} messages of the outbox published in {:.1f} s, {} refused",
          drained ? "drained, nothing waits any more" : "stopped, everything in hand is finished",
          total.published, seconds(Clock::now() - started_), total.refused));
}

void LogObserver::stopping(const std::string& signal) {
  say(spdlog::level::info, "stopping",
      fmt::format("{}: finishing what is in hand; a second signal ends at once", signal));
}

void LogObserver::reloading() {
  say(spdlog::level::info, "reloading",
      "SIGHUP: the configuration is good; finishing what is in hand, and beginning anew with it");
}

void LogObserver::not_reloaded(const std::string& problem) {
  say(spdlog::level::err, "not_reloaded",
      fmt::format("SIGHUP: going on as before, since the configuration cannot be used: {}",
                  problem));
}

void LogObserver::ended(RunResult result) {
  ticker_.stop();
  report_held(Clock::now(), true);
  const auto total = counters_.read();
  const auto took = seconds(Clock::now() - started_);
  std::string left_behind;
  {
    const std::scoped_lock lock(drained_mutex_);
    if (result == RunResult::kHaltedPartitions)
      left_behind = fmt::format(": {}", left_behind_);
  }
  say(result == RunResult::kStopped ? spdlog::level::info : spdlog::level::warn, "ended",
      fmt::format("{}{}; {} messages processed in {:.1f} s ({} of them duplicates, {} skipped{}){}",
                  meaning(result), left_behind, total.processed, took, total.duplicates,
                  total.skipped, set_aside_text(total),
                  left_behind.empty() ? "" : "; why: " + status_command_));
}

void LogObserver::failed(const std::string& reason) {
  ticker_.stop();
  report_held(Clock::now(), true);
  say(spdlog::level::err, "fatal", reason);
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
  note(event);
  // Kafka fails for several reasons in turn; each is written once in an outage.
  if (event.step == Step::kKafkaLost) {
    const std::string why(event.detail);
    if (!kafka_outage_.lost(Clock::now(), why) && !kafka_outage_.fails(why))
      return;
  }
  auto said = line_of(event);
  if (!said)
    return;
  // What led there stands in front of it, and not a minute later.
  if (event.step == Step::kHalted || event.step == Step::kRevoked) {
    const auto now = Clock::now();
    say_held(repeats_.take_held_of(place_text(event), now), now);
  }
  if (said->limited) {
    limited(said->level, event, said->text);
  } else {
    line(said->level, event, std::move(said->text));
  }
}

void LogObserver::note(const Event& event) {
  counters_.count(event);
  relay_counters_.count(event);
  switch (event.step) {
    case Step::kCommitted:
    case Step::kDuplicate:
    case Step::kSkipped:
    case Step::kDeadLettered:
    case Step::kRetryLater:
    case Step::kParked:
      if (log_->should_log(spdlog::level::debug))
        line(spdlog::level::debug, event, std::string(to_string(event.step)));
      return;
    case Step::kConnected:
      return connection_made(event);
    case Step::kDisconnected:
      return connection_lost(event);
    case Step::kDatabaseLost:
      return other_reason(event);
    case Step::kKafkaBack: {
      const auto now = Clock::now();
      kafka_outage_.found(now);
      static_cast<void>(kafka_outage_.take_ended(now));
      return;
    }
    case Step::kDrained: {
      const std::scoped_lock lock(drained_mutex_);
      left_behind_ = event.detail;
      return;
    }
    default:
      return;
  }
}

void LogObserver::line(level_enum level, const Event& event, std::string text) {
  LogLine line;
  line.level = level;
  line.event = to_string(event.step);
  line.topic = event.topic;
  line.partition = event.partition;
  line.offset = event.step == Step::kHalted ? -1 : event.offset;
  line.of_message = is_of_message(event.step);
  line.message_offset = message_offset(event);
  line.lag = event.lag;
  line.traceparent = event.traceparent;
  line.remote = event.remote;
  if (event.warning)
    line.code = to_string(*event.warning);
  if (level <= spdlog::level::debug)
    line.key = event.key;
  line.text = std::move(text);
  write(*log_, format_, group_, line);
}

void LogObserver::limited(level_enum level, const Event& event, const std::string& text) {
  if (!log_->should_log(level))
    return;
  const auto same = without_counts(without_letter_advice(text));
  if (repeats_.admit(place_text(event) + same, Clock::now()))
    line(level, event, text);
}

void LogObserver::connection_lost(const Event& event) {
  const bool begins = !outage_.standing(Clock::now());
  if (outage_.lost(Clock::now(), std::string(event.detail)))
    line(spdlog::level::warn, event, outage_text(begins, event.detail));
}

/// The connection was lost before, so each attempt to make a new one fails without another event.
void LogObserver::other_reason(const Event& event) {
  if (!outage_.fails(std::string(event.detail)))
    return;
  auto lost = event;
  lost.step = Step::kDisconnected;
  line(spdlog::level::warn, lost, outage_text(false, event.detail));
}

void LogObserver::connection_made(const Event& event) {
  outage_.found(Clock::now());
  if (event.detail.empty()) {
    line(spdlog::level::debug, event, "a worker is connected to PostgreSQL");
  } else {
    limited(spdlog::level::warn, event, fmt::format("connected to PostgreSQL {}", event.detail));
  }
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
  report_connection(now);
  report_held(now, false);
  if (progress_interval_.count() > 0 && now - last_progress_at_ >= progress_interval_) {
    report_progress(now);
  }
}

void LogObserver::report_held(Clock::time_point now, bool all) {
  say_held(repeats_.take_held(now, all), now);
}

void LogObserver::say_held(const std::vector<RepeatLimiter::Held>& texts, Clock::time_point now) {
  for (const auto& held : texts) {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(now - held.last);
    say(spdlog::level::warn, "repeated",
        fmt::format("{}: {}", times_text(held.times, ago), held.text));
  }
}

void LogObserver::report_connection(Clock::time_point now) {
  if (const auto ended = outage_.take_ended(now)) {
    say(spdlog::level::info, to_string(Step::kConnected),
        fmt::format("PostgreSQL is back after {:.1f} s; that was {:.1f} s ago",
                    seconds(ended->took), seconds(ended->ago)));
  }
}

/// Who holds no lane is not silent.
void LogObserver::report_relayed(std::chrono::milliseconds passed) {
  const auto relayed = relay_counters_.read();
  if (relayed.lanes == 0 || relayed != last_relayed_)
    write(*log_, format_, group_, relayed_line(last_relayed_, relayed, passed));
  last_relayed_ = relayed;
}

void LogObserver::report_progress(Clock::time_point now) {
  const auto passed =
      std::chrono::duration_cast<std::chrono::milliseconds>(now - last_progress_at_);
  if (consumer_ == nullptr) {
    report_relayed(passed);
    last_progress_at_ = now;
    return;
  }
  const auto partitions = consumer_->partitions();
  Progress progress{counters_.read(), standing(partitions), false, places(partitions)};
  progress.assigned_once = last_progress_.assigned_once || progress.at.partitions > 0;
  // Who waits for something is not silent; who has nothing to do is.
  const auto& at = progress.at;
  std::vector<Unreachable> unreachable;
  const auto add = [&](std::string_view server, const Outage& outage) {
    if (auto standing = outage.standing(now))
      unreachable.push_back({server,
                             std::chrono::duration_cast<std::chrono::seconds>(standing->lasts),
                             std::move(standing->why)});
  };
  add("PostgreSQL", outage_);
  add("Kafka", kafka_outage_);
  const bool waits = !progress.assigned_once || !unreachable.empty() || at.halted > 0 ||
                     at.paused > 0 || at.lag.value_or(0) > 0;
  if (waits || progress != last_progress_)
    write(*log_, format_, group_, progress_line(last_progress_, progress, passed, unreachable));
  last_progress_ = progress;
  last_progress_at_ = now;
}

}  // namespace pawl::ops
