#include "ops/alerts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/step_lines.hpp"

namespace pawl::ops {
namespace {

/// PostgreSQL refuses a payload of 8000 bytes (manual, NOTIFY).
constexpr std::size_t kMostNotify = 7999;
constexpr std::size_t kMostInput = 65536;
constexpr std::chrono::milliseconds kFarewell{2000};
/// For killing and reaping the command behind the farewell.
constexpr std::chrono::milliseconds kMargin{500};

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Alert alert_of(std::string_view kind, const Event& event, const InvocationOptions& invocation) {
  Alert alert;
  alert.kind = kind;
  alert.topic = event.topic;
  alert.partition = event.partition;
  alert.message_offset = message_offset(event);
  alert.handler = event.handler;
  alert.reason = event.reason;
  alert.sqlstate = event.sqlstate;
  const auto statement = std::ranges::find(event.fields, "statement", &EventField::name);
  if (statement != event.fields.end())
    alert.statement = std::get<std::string_view>(statement->value);
  alert.dead_letter_id = event.dead_letter_id;
  alert.msg = event_text(event, invocation);
  alert.happened_ms = wall_clock_ms();
  return alert;
}

/// Most events are messages that went well; for them an observer must cost nothing.
bool concerns_alerts(const Event& event) {
  switch (event.step) {
    case Step::kWarning:
      return event.warning == Warning::kLeaseLost;
    case Step::kPartitionHalted:
    case Step::kPartitionAssigned:
    case Step::kHaltedPartitionRetried:
    case Step::kPartitionResumed:
    case Step::kMessageDeadLettered:
    case Step::kCircuitBreakerOpened:
    case Step::kProbationAttemptCrashed:
    case Step::kHandlersDiffer:
    case Step::kTopicAccessDenied:
    case Step::kOutboxMessageRejected:
    case Step::kOutboxLate:
    case Step::kOutboxCaughtUp:
    case Step::kDatabaseUnreachable:
    case Step::kDatabaseReachable:
    case Step::kKafkaUnreachable:
    case Step::kKafkaReachable:
    case Step::kRedisUnreachable:
    case Step::kRedisReachable:
    case Step::kRemoteServiceUnreachable:
    case Step::kRemoteServiceReachable:
    case Step::kPartitionBlocked:
    case Step::kPartitionUnblocked:
      return true;
    default:
      return false;
  }
}

}  // namespace

AlertObserver::AlertObserver(const Options& options, std::function<void(const std::string&)> report)
    : invocation_(options.invocation),
      sender_(alert_sender(options)),
      report_(std::move(report)),
      limit_(options.alerts.min_interval, options.alerts.unreachable_after) {
  if (!options.alerts.command.empty())
    command_ = std::make_unique<process::Program>(options.alerts.command, options.alerts.timeout);
  if (!options.alerts.notify_channel.empty())
    notify_ = std::make_unique<AlertNotify>(options);
  thread_ = std::thread([this] { run(); });
}

AlertObserver::~AlertObserver() {
  finish();
  thread_.join();
}

bool AlertObserver::wanted(const AlertOptions& options) {
  return !options.command.empty() || !options.notify_channel.empty();
}

void AlertObserver::on_event(const Event& event) noexcept {
  if (!concerns_alerts(event))
    return;
  try {
    const std::scoped_lock lock(mutex_);
    note(event);
  } catch (const std::exception&) {
    // Out of memory: the log has the event as well.
    return;
  }
  changed_.notify_all();
}

void AlertObserver::note(const Event& event) {
  using Server = AlertLimit::Server;
  const auto now = Clock::now();
  switch (event.step) {
    case Step::kPartitionHalted:
      limit_.add_halt(alert_of(alert_kind::kHalt, event, invocation_), now);
      break;
    case Step::kPartitionAssigned:
    case Step::kHaltedPartitionRetried:
    case Step::kPartitionResumed:
      limit_.runs({std::string(event.topic), event.partition});
      break;
    case Step::kMessageDeadLettered:
      limit_.add(alert_of(alert_kind::kDeadLetter, event, invocation_), now);
      break;
    case Step::kCircuitBreakerOpened:
      limit_.add(alert_of(alert_kind::kCircuitBreaker, event, invocation_), now);
      break;
    case Step::kProbationAttemptCrashed:
      limit_.add(alert_of(alert_kind::kProbation, event, invocation_), now);
      break;
    case Step::kWarning:
      limit_.add(alert_of(alert_kind::kLeaseLost, event, invocation_), now);
      break;
    case Step::kHandlersDiffer:
      limit_.add(alert_of(alert_kind::kHandlersDiffer, event, invocation_), now);
      break;
    case Step::kTopicAccessDenied:
      limit_.add(alert_of(alert_kind::kTopicAccessDenied, event, invocation_), now);
      break;
    case Step::kOutboxMessageRejected:
      limit_.add(alert_of(alert_kind::kOutboxRejected, event, invocation_), now);
      break;
    case Step::kOutboxLate:
      limit_.add(alert_of(alert_kind::kOutboxLate, event, invocation_), now);
      break;
    case Step::kOutboxCaughtUp:
      limit_.add_end(alert_of(alert_kind::kOutboxCaughtUp, event, invocation_),
                     alert_kind::kOutboxLate, now);
      break;
    case Step::kDatabaseUnreachable:
      limit_.lost(Server::kDatabase, std::string(event.detail), now);
      break;
    case Step::kDatabaseReachable:
      limit_.back(Server::kDatabase, wall_clock_ms(), now);
      break;
    case Step::kKafkaUnreachable:
      limit_.lost(Server::kKafka, std::string(event.detail), now);
      break;
    case Step::kKafkaReachable:
      limit_.back(Server::kKafka, wall_clock_ms(), now);
      break;
    case Step::kRedisUnreachable:
      limit_.lost(Server::kRedis, std::string(event.detail), now);
      break;
    case Step::kRedisReachable:
      limit_.back(Server::kRedis, wall_clock_ms(), now);
      break;
    case Step::kRemoteServiceUnreachable:
      limit_.lost(Server::kRemoteService, std::string(event.detail), now,
                  std::string(event.endpoint));
      break;
    case Step::kRemoteServiceReachable:
      limit_.back(Server::kRemoteService, wall_clock_ms(), now, std::string(event.endpoint));
      break;
    case Step::kPartitionBlocked:
      limit_.add_blocked(alert_of(alert_kind::kPartitionBlocked, event, invocation_), now);
      break;
    case Step::kPartitionUnblocked:
      limit_.add_unblocked(alert_of(alert_kind::kPartitionUnblocked, event, invocation_), now);
      break;
    default:
      break;
  }
}

void AlertObserver::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto now = Clock::now();
    auto alert = now < deadline_ ? limit_.take(wall_clock_ms(), now) : std::nullopt;
    if (alert) {
      lock.unlock();
      send(*alert);
      lock.lock();
      continue;
    }
    if (finishing_) {
      if (const auto left = limit_.waiting(); left > 0) {
        lock.unlock();
        report_(fmt::format("{} alerts were not sent before the process exited", left));
        lock.lock();
      }
      break;
    }
    const auto due = limit_.next_due();
    if (due == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, due);
    }
  }
  finished_ = true;
  changed_.notify_all();
}

void AlertObserver::send(const Alert& alert) {
  try {
    if (command_) {
      const auto problem = command_
                               ->run({alert_json(sender_, alert, kMostInput) + '\n',
                                      alert_environment(sender_, alert)})
                               .problem;
      if (!problem.empty())
        report_(fmt::format("alerts.command failed for the alert {}: {}", alert.kind, problem));
    }
    // The database cannot carry the news that it is away; the command does.
    if (notify_ && alert.kind != alert_kind::kDatabaseUnreachable) {
      const auto problem = notify_->send(alert_json(sender_, alert, kMostNotify));
      if (!problem.empty())
        report_(fmt::format("alerts.notify_channel: the alert {} is not sent: {}", alert.kind,
                            problem));
    }
  } catch (const std::exception& error) {
    report_(fmt::format("the alert {} is not sent: {}", alert.kind, error.what()));
  }
}

bool AlertObserver::finish() {
  std::unique_lock lock(mutex_);
  if (!std::exchange(finishing_, true)) {
    deadline_ = Clock::now() + kFarewell;
    limit_.hurry();
    if (command_)
      command_->end_by(deadline_);
    changed_.notify_all();
  }
  if (changed_.wait_until(lock, deadline_, [this] { return finished_; }))
    return true;
  lock.unlock();
  if (notify_)
    notify_->interrupt();
  lock.lock();
  return changed_.wait_for(lock, kMargin, [this] { return finished_; });
}

}  // namespace pawl::ops
