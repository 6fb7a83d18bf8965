#include "ops/log_observer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "config/redact.hpp"
#include "handlers/handler_statement.hpp"
#include "ops/catching_up.hpp"

namespace pawl::ops {
namespace {

using spdlog::level::level_enum;

constexpr std::chrono::milliseconds kTick{500};
constexpr std::chrono::milliseconds kRepeatInterval{60000};
/// Workers notice an outage and its end one after another; only the whole is worth lines.
constexpr std::chrono::milliseconds kConnectionQuiet{1000};

std::string topics_of(const Options& options) {
  std::vector<std::string> topics;
  std::set<std::string> seen;
  for (const auto& handler : options.handlers) {
    for (const auto& topic : handler.topics) {
      if (seen.insert(topic).second)
        topics.push_back(topic);
    }
  }
  return fmt::format("{}", fmt::join(topics, ", "));
}

/// The handlers whose messages do not go one by one: they share transactions, or the way to the
/// server.
std::string together(const Options& options, const Registry& registry) {
  std::vector<std::string> batches;
  std::vector<std::string> flights;
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const auto& handler = options.handlers[i];
    const auto name =
        handlers::handler_text(handler.name.empty() ? handlers::handler_option(i) : handler.name);
    const bool is_code = handler.sql.empty() && handler.function.empty();
    const bool takes_batches =
        is_code ? registry.find_batch_handler(handler.name) != nullptr : handler.batch;
    if (takes_batches && handler.failures.then != FailurePolicy::kPark)
      batches.push_back(name);
    if (is_code ? registry.find_statement_handler(handler.name) != nullptr
                : !handler.sql.empty() && !handler.batch)
      flights.push_back(name);
  }
  std::string text;
  if (!batches.empty() && options.batch.max_messages > 1) {
    text += fmt::format("; up to {} messages of {} share one transaction",
                        options.batch.max_messages, fmt::join(batches, ", "));
  }
  if (!flights.empty() && options.consumer.pipeline > 1 && !options.postgres.pooled) {
    text += fmt::format("; up to {} transactions of {} travel to PostgreSQL at once",
                        options.consumer.pipeline, fmt::join(flights, ", "));
  }
  return text;
}

std::string guarantee_of(const Options& options) {
  const bool unchecked = std::any_of(
      options.handlers.begin(), options.handlers.end(), [&](const HandlerOptions& handler) {
        return handler.missing_key.value_or(options.idempotency.missing_key) ==
               MissingKey::kProcess;
      });
  return fmt::format(
      "each message is one transaction of key, effects and offset: one effect per key{}{}",
      unchecked ? " (messages without a key are applied unchecked: missing_key = \"process\")" : "",
      options.consumer.durability == Durability::kReplayable
          ? fmt::format(
                "; durability = \"replayable\": a crash of PostgreSQL may take back commits "
                "of the last {} ms, which are made again",
                options.consumer.durability_interval.count())
          : "");
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
  }
  return "ended";
}

}  // namespace

LogObserver::LogObserver(const Options& options)
    : group_(options.kafka.group),
      format_(options.log.format),
      progress_interval_(options.log.progress_interval),
      log_(make_logger(options.log)),
      repeats_(kRepeatInterval),
      started_(Clock::now()),
      last_progress_(started_) {}

LogObserver::~LogObserver() {
  {
    const std::scoped_lock lock(tick_mutex_);
    ending_ = true;
  }
  tick_changed_.notify_one();
  if (ticker_.joinable())
    ticker_.join();
}

void LogObserver::say(level_enum level, std::string_view event, std::string text) {
  LogLine line;
  line.level = level;
  line.event = event;
  line.text = std::move(text);
  write(*log_, format_, group_, line);
}

void LogObserver::starting(const std::string& program, const Options& options,
                           const Registry& registry) {
  say(spdlog::level::info, "starting",
      fmt::format("{}: group {} consumes {} from {} into {} (schema {}){}; {}{}", program, group_,
                  topics_of(options), options.kafka.bootstrap_servers,
                  config::redact_url(options.postgres.url), options.postgres.schema,
                  options.consumer.drain ? ", until drained" : "", guarantee_of(options),
                  together(options, registry)));
  started_ = last_progress_ = Clock::now();
  ticker_ = std::thread([this] { tick(); });
}

void LogObserver::stopping(const std::string& signal) {
  say(spdlog::level::info, "stopping",
      fmt::format("{}: finishing what is in hand; a second signal ends at once", signal));
}

void LogObserver::ended(RunResult result) {
  report_held(Clock::now(), true);
  const auto total = counts();
  const auto took = seconds(Clock::now() - started_);
  std::string left_behind;
  {
    const std::scoped_lock lock(drained_mutex_);
    if (result == RunResult::kHaltedPartitions)
      left_behind = fmt::format(": {}; `status` tells why", left_behind_);
  }
  say(result == RunResult::kStopped ? spdlog::level::info : spdlog::level::warn, "ended",
      fmt::format("{}{}; {} messages processed in {:.1f} s ({} of them duplicates, {} skipped{})",
                  meaning(result), left_behind, total.processed, took, total.duplicates,
                  total.skipped, set_aside(total)));
}

void LogObserver::failed(const std::string& reason) {
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
  switch (event.step) {
    case Step::kCommitted:
    case Step::kDuplicate:
    case Step::kSkipped:
      processed(event);
      return;
    case Step::kDeadLettered:
      processed(event);
      limited(spdlog::level::warn, event, fmt::format("dead letter: {}", event.detail));
      return;
    case Step::kParked:
      processed(event);
      return;
    case Step::kProbation:
      limited(spdlog::level::warn, event, std::string(event.detail));
      return;
    case Step::kFailed:
      failed_.fetch_add(1, std::memory_order_relaxed);
      limited(spdlog::level::warn, event, fmt::format("one try failed: {}", event.detail));
      return;
    case Step::kConnected:
      connection_made(event);
      return;
    case Step::kDisconnected:
      connection_lost(event);
      return;
    case Step::kKafkaLost:
      kafka_away_ = true;
      limited(spdlog::level::warn, event,
              fmt::format("Kafka does not answer: {}; goes on by itself", event.detail));
      return;
    case Step::kKafkaBack:
      kafka_away_ = false;
      line(spdlog::level::info, event, "Kafka answers again");
      return;
    case Step::kTopicRefused:
      line(spdlog::level::err, event, std::string(event.detail));
      return;
    case Step::kTopicServed:
    case Step::kPruned:
      line(spdlog::level::info, event, std::string(event.detail));
      return;
    case Step::kHandlersDiffer:
      line(spdlog::level::warn, event, std::string(event.detail));
      return;
    case Step::kRelayed:
      line(spdlog::level::debug, event, std::string(event.detail));
      return;
    case Step::kGroupAwaited:
      line(spdlog::level::info, event, std::string(event.detail));
      return;
    case Step::kWarning:
      limited(spdlog::level::warn, event, std::string(event.detail));
      return;
    case Step::kLogEnd:
      follow(event);
      return;
    case Step::kDrained: {
      const std::scoped_lock lock(drained_mutex_);
      left_behind_ = event.detail;
      return;
    }
    default:
      break;
  }
  follow(event);
  switch (event.step) {
    case Step::kAcquired:
      line(spdlog::level::info, event,
           !event.detail.empty()
               ? fmt::format("{}: goes on behind stored offset {}", event.detail, event.offset)
           : event.offset < 0
               ? "assigned, nothing is processed yet: begins at offset 0"
               : fmt::format("assigned, goes on behind stored offset {}", event.offset));
      break;
    case Step::kRevoked:
      line(spdlog::level::info, event, fmt::format("taken away behind offset {}", event.offset));
      break;
    case Step::kPaused:
      line(
          spdlog::level::info, event,
          fmt::format("paused by an operator{}{}", event.detail.empty() ? "" : ": ", event.detail));
      break;
    case Step::kHalted:
      line(spdlog::level::err, event, fmt::format("HALTED: {}", event.detail));
      break;
    case Step::kFenced:
      limited(spdlog::level::warn, event,
              fmt::format(
                  "another owner or an operator has taken the partition ({}); asking for it again",
                  event.detail));
      break;
    case Step::kInDoubt:
      limited(
          spdlog::level::warn, event,
          fmt::format("whether the last COMMIT was stored is unknown ({}); the register will tell",
                      event.detail));
      break;
    default:
      line(spdlog::level::debug, event,
           fmt::format("{} {} {}", to_string(event.step), event.offset, event.detail));
      break;
  }
}

void LogObserver::processed(const Event& event) {
  applied_.fetch_add(1, std::memory_order_relaxed);
  if (event.step == Step::kDuplicate)
    duplicates_.fetch_add(1, std::memory_order_relaxed);
  if (event.step == Step::kSkipped)
    skipped_.fetch_add(1, std::memory_order_relaxed);
  if (event.step == Step::kDeadLettered)
    dead_.fetch_add(1, std::memory_order_relaxed);
  if (event.step == Step::kParked)
    parked_.fetch_add(1, std::memory_order_relaxed);
  auto* partition = partitions_.find(event.topic, event.partition);
  if (partition == nullptr)
    partition = &partitions_.add(event.topic, event.partition);
  const auto next = event.offset + 1;
  partition->next.store(next, std::memory_order_relaxed);
  if (event.lag >= 0)
    partition->end.store(next + event.lag, std::memory_order_relaxed);
  if (log_->should_log(spdlog::level::debug)) {
    line(spdlog::level::debug, event, std::string(to_string(event.step)));
  }
}

void LogObserver::follow(const Event& event) {
  if (event.topic.empty() || event.partition < 0)
    return;
  auto& partition = partitions_.add(event.topic, event.partition);
  switch (event.step) {
    case Step::kAssigned:
      partition.owned = true;
      break;
    case Step::kAcquired:
      partition.owned = true;
      partition.halted = false;
      partition.paused = false;
      partition.next = event.offset + 1;
      if (event.lag >= 0)
        partition.end = event.offset + 1 + event.lag;
      break;
    case Step::kHalted:
      partition.halted = true;
      partition.paused = false;
      break;
    case Step::kPaused:
      partition.paused = true;
      partition.halted = false;
      break;
    case Step::kRevoked:
      partition.owned = false;
      break;
    case Step::kLogEnd:
      partition.end = event.offset;
      break;
    case Step::kCaughtUp:
      partition.next = event.offset;
      partition.end = event.offset;
      break;
    default:
      break;
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
  if (level <= spdlog::level::debug)
    line.key = event.key;
  line.text = std::move(text);
  write(*log_, format_, group_, line);
}

void LogObserver::limited(level_enum level, const Event& event, const std::string& text) {
  if (!log_->should_log(level))
    return;
  const auto where =
      event.topic.empty() ? std::string{} : fmt::format("{} [{}]: ", event.topic, event.partition);
  if (repeats_.admit(where + text, Clock::now()))
    line(level, event, text);
}

void LogObserver::connection_lost(const Event& event) {
  {
    const std::scoped_lock lock(outage_mutex_);
    back_since_.reset();
    if (away_since_)
      return;
    away_since_ = Clock::now();
  }
  line(spdlog::level::warn, event,
       fmt::format("PostgreSQL is away: {}. Nothing is fetched meanwhile; goes on by itself",
                   event.detail));
}

void LogObserver::connection_made(const Event& event) {
  {
    const std::scoped_lock lock(outage_mutex_);
    if (away_since_)
      back_since_ = Clock::now();
  }
  if (event.detail.empty()) {
    line(spdlog::level::debug, event, "a worker is connected to PostgreSQL");
  } else {
    limited(spdlog::level::warn, event, fmt::format("connected to PostgreSQL {}", event.detail));
  }
}

void LogObserver::tick() {
  std::unique_lock lock(tick_mutex_);
  while (!tick_changed_.wait_for(lock, kTick, [this] { return ending_; })) {
    lock.unlock();
    try {
      serve();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as in on_event()
    }
    lock.lock();
  }
}

void LogObserver::serve() {
  const auto now = Clock::now();
  report_connection(now);
  report_held(now, false);
  if (progress_interval_.count() > 0 && now - last_progress_ >= progress_interval_) {
    report_progress(now);
  }
}

void LogObserver::report_held(Clock::time_point now, bool all) {
  for (const auto& held : repeats_.take_held(now, all)) {
    say(spdlog::level::warn, "repeated", fmt::format("{} more times: {}", held.times, held.text));
  }
}

void LogObserver::report_connection(Clock::time_point now) {
  double away = 0;
  {
    const std::scoped_lock lock(outage_mutex_);
    if (!away_since_ || !back_since_ || now - *back_since_ < kConnectionQuiet)
      return;
    away = seconds(*back_since_ - *away_since_);
    away_since_.reset();
    back_since_.reset();
  }
  say(spdlog::level::info, to_string(Step::kConnected),
      fmt::format("PostgreSQL is back after {:.1f} s", away));
}

LogObserver::Counts LogObserver::counts() const {
  return {applied_.load(), duplicates_.load(), skipped_.load(),
          dead_.load(),    parked_.load(),     failed_.load()};
}

/// What most consumers never have is said only where it is so.
std::string LogObserver::set_aside(const Counts& counts) {
  if (counts.dead + counts.parked == 0)
    return "";
  return fmt::format(", {} DEAD LETTERS, {} parked behind them", counts.dead, counts.parked);
}

LogObserver::Position LogObserver::position() const {
  Position position;
  for (const auto* partition : partitions_.all()) {
    if (!partition->owned)
      continue;
    ++position.partitions;
    position.halted += partition->halted ? 1 : 0;
    position.paused += partition->paused ? 1 : 0;
    const auto next = partition->next.load();
    const auto end = partition->end.load();
    position.lag_known = position.lag_known && next >= 0 && end >= 0;
    position.lag += std::max<std::int64_t>(0, end - next);
  }
  return position;
}

/// "8 partitions (1 HALTED, 2 paused)"
std::string LogObserver::partitions_text(const Position& position) const {
  if (position.partitions == 0)
    return assigned_once_ ? "no partition is assigned" : "no partition is assigned yet";
  std::vector<std::string> standing;
  if (position.halted > 0)
    standing.push_back(fmt::format("{} HALTED", position.halted));
  if (position.paused > 0)
    standing.push_back(fmt::format("{} paused", position.paused));
  return fmt::format("{} partitions{}", position.partitions,
                     standing.empty() ? "" : fmt::format(" ({})", fmt::join(standing, ", ")));
}

LogLine LogObserver::progress_line(const Counts& total, const Position& at,
                                   std::chrono::milliseconds passed) const {
  const auto rate = static_cast<double>(total.processed - last_counts_.processed) * 1000 /
                    static_cast<double>(passed.count());
  std::optional<std::int64_t> eta;
  if (at.lag_known && last_position_.lag_known && last_position_.partitions == at.partitions)
    eta = seconds_to_catch_up(last_position_.lag, at.lag, passed);
  LogLine line;
  line.event = "progress";
  line.text = fmt::format(
      "{} messages processed ({:.0f}/s), {} duplicates, {} skipped{}, {} failed tries; {}, lag "
      "{}{}",
      total.processed, rate, total.duplicates, total.skipped, set_aside(total), total.failed,
      partitions_text(at), at.lag_known ? std::to_string(at.lag) : "not known",
      eta.value_or(0) > 0 ? fmt::format(", caught up in {}", span_text(*eta)) : "");
  const auto figure = [&line](std::string_view name, auto number) {
    line.figures.emplace_back(name, static_cast<std::int64_t>(number));
  };
  figure("processed", total.processed);
  figure("per_second", rate);
  figure("duplicates", total.duplicates);
  figure("skipped", total.skipped);
  figure("dead", total.dead);
  figure("parked", total.parked);
  figure("failed", total.failed);
  figure("partitions", at.partitions);
  figure("halted", at.halted);
  figure("paused", at.paused);
  if (eta)
    figure("eta_seconds", *eta);
  if (at.lag_known)
    line.lag = at.lag;
  return line;
}

void LogObserver::report_progress(Clock::time_point now) {
  const auto total = counts();
  auto at = position();
  assigned_once_ = assigned_once_ || at.partitions > 0;
  at.lag_known = at.lag_known && at.partitions > 0;
  // Who waits for something is not silent; who has nothing to do is.
  const bool waits = !assigned_once_ || kafka_away_ || at.halted > 0 || at.paused > 0;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_progress_);
  if (waits || total != last_counts_ || at != last_position_)
    write(*log_, format_, group_, progress_line(total, at, passed));
  last_counts_ = total;
  last_position_ = at;
  last_progress_ = now;
}

}  // namespace pawl::ops
