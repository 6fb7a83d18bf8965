#include "dead_letters/retry_task.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/letter_advice.hpp"
#include "config/units.hpp"
#include "dead_letters/after_retry.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "engine/backoff.hpp"
#include "handlers/handler_statement.hpp"
#include "ledger/consumers.hpp"
#include "pawl/errors.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{1000};
constexpr milliseconds kRetryInitial{1000};
constexpr milliseconds kRetryMax{30000};
/// Behind a message on probation, which has the process to itself.
constexpr milliseconds kTurnedAway{20};
/// Of one partition, before the others are asked for again.
constexpr std::int64_t kLettersAtOnce = 20;

postgres::SessionSettings settings(const Options& options) {
  auto settings = session_settings(options);
  settings.application_name = "pawl retry later";
  settings.by_index = true;
  return settings;
}

/// None where the policy is another one by now.
std::int32_t retries_allowed(const FailureOptions& options) {
  return options.on_failure == FailurePolicy::kRetryLater
             ? static_cast<std::int32_t>(options.retry_later.size())
             : 0;
}

/// Of a dead letter with more tries than are allowed.
std::string why_no_more(const FailureOptions& options, const ledger::DueLetter& due) {
  if (options.on_failure != FailurePolicy::kRetryLater)
    return "on_failure of its handler is not \"retry-later\" any more";
  return fmt::format(
      "the process that tried it for the {}. time ended, or retry_later has become shorter",
      due.retries);
}

/// The delay behind the try after which `retries` tries were made; behind the last one it only says
/// when a try whose process died is noticed.
milliseconds delay_behind(const FailureOptions& options, std::int32_t retries) {
  const auto last = options.retry_later.size() - 1;
  return options.retry_later[std::min(static_cast<std::size_t>(std::max(retries, 0)), last)];
}

}  // namespace

RetryTask::RetryTask(Context& context)
    : context_(context),
      frame_(quiet_frame()),
      letters_(context.options.postgres.schema, context.registration.consumer),
      view_(context.options.postgres.schema, context.registration.consumer),
      source_([this]() -> kafka::Client& { return context_.kafka; }) {
  for (const auto& binding : context.router.bindings())
    by_handler_[binding->label] = &binding->failures;
  thread_ = std::thread([this] { run(); });
}

RetryTask::~RetryTask() {
  if (!bell_.stopping())
    stop(Clock::now(), false);
  thread_.join();
}

FrameContext RetryTask::quiet_frame() const {
  const auto& frame = context_.frame;
  return {frame.options,        frame.router,         nobody_,          frame.keys,
          frame.skips,          frame.dead_letters,   frame.batch_keys, frame.letter_stored,
          frame.outbox_written, frame.owner,          frame.leases,     frame.lease_keeper,
          frame.schema,         frame.remote_services};
}

void RetryTask::emit(Step step, const ledger::DueLetter& due, const std::string& text) const {
  Event event{step};
  event.topic = due.partition.topic;
  event.partition = due.partition.partition;
  event.offset = due.offset;
  event.handler = due.handler;
  event.detail = text;
  event.traceparent = traceparent_;
  context_.observers.emit(event);
}

void RetryTask::warn(const std::string& text) const {
  context_.observers.emit(
      warning_event(Warning::kRetryLater, fmt::format("retry_later: {}", text)));
}

void RetryTask::run() {
  Backoff backoff(kRetryInitial, kRetryMax);
  auto wait = milliseconds{0};
  while (true) {
    bell_.wait(wait, wait);
    if (bell_.stopping()) {
      if (bell_.finish())
        try_to([this] { return tell_waiting(); });
      return;
    }
    if (try_to([this] { return pass(); })) {
      backoff.reset();
      wait = kInterval;
      if (idle_)
        return session_.reset();
    } else {
      wait = backoff.next();
    }
  }
}

// A lost connection is the workers' to tell.
bool RetryTask::try_to(const std::function<bool()>& what) {
  try {
    return what();
  } catch (const postgres::InDoubt&) {
    // Each change names what it changes, and is made again.
    session_.reset();
  } catch (const postgres::Error& error) {
    if (error.failure() != postgres::FailureClass::kConnection)
      warn(fmt::format("{} (SQLSTATE {})", error.what(), error.sqlstate()));
  } catch (const std::exception& error) {
    warn(error.what());
  }
  session_.reset();
  // A call that it made is not to be made again.
  if (!replay_ || !replay_->has_call())
    replay_.reset();
  return false;
}

bool RetryTask::pass() {
  if (!connect())
    return false;
  give_back();
  while (true) {
    const auto due = letters_.due(*session_, kLettersAtOnce);
    if (due.empty()) {
      idle_ = !wanted();
      return true;
    }
    for (const auto& letter : due) {
      const auto leave = ask_to_run();
      if (!leave)
        return true;
      try_again(letter);
    }
  }
}

/// Not beside a message on probation: if the process ended, nobody could say whose doing it was.
/// None: the process is to end.
RunGate::Pass RetryTask::ask_to_run() {
  while (!bell_.stopping()) {
    if (auto leave = context_.gate.among_others())
      return leave;
    bell_.wait(kTurnedAway, kTurnedAway);
  }
  return {};
}

/// A drain does not wait for them.
bool RetryTask::tell_waiting() {
  if (!connect())
    return false;
  std::int64_t letters = 0;
  for (const auto& count : view_.counts(*session_, {}))
    letters += count.retried;
  if (letters > 0)
    warn(fmt::format("dead letters that are to be tried again by a later `run`: {}", letters));
  return true;
}

bool RetryTask::connect() {
  if (session_ && session_->alive())
    return true;
  const auto& options = context_.options;
  session_ = std::make_unique<postgres::Session>(settings(options));
  if (ledger::still_registered(*session_, options.postgres.schema, options.kafka.cluster,
                               options.kafka.group, context_.registration))
    return true;
  // Another database than the one we began with; the workers deal with that.
  session_.reset();
  return false;
}

bool RetryTask::wanted() {
  return std::ranges::any_of(
             by_handler_,
             [](const auto& handler) { return retries_allowed(*handler.second) > 0; }) ||
         letters_.any(*session_);
}

void RetryTask::try_again(const ledger::DueLetter& due) {
  const auto letter = read(due);
  if (!letter)
    return;
  const auto& options = policy_of(*letter);
  if (due.retries >= retries_allowed(options)) {
    if (!by_handler_.contains(due.handler))
      return leave_to_others(due);
    return give_up(due, fmt::format("{}; before: {}", why_no_more(options, due), letter->error));
  }
  // Also where it stays unknown whether it was taken.
  to_give_back_ = due;
  if (letters_.take(*session_, due, delay_behind(options, due.retries + 1)))
    end(due, replay().one(*letter), options);
  to_give_back_.reset();
}

/// Of the handler that a replay would give its message to: handlers without a name are called by
/// their place, which changes. Where the message cannot be had, of the one that it was of.
const FailureOptions& RetryTask::policy_of(const ledger::DeadLetter& letter) {
  const auto* const binding = replay().handler_of(letter);
  return binding == nullptr ? options_of(letter.handler) : binding->failures;
}

/// Nullopt: it is resolved.
std::optional<ledger::DeadLetter> RetryTask::read(const ledger::DueLetter& due) {
  ledger::DeadLetterFilter filter;
  filter.ids = {due.id};
  auto letters = view_.list(*session_, filter, 1, true);
  traceparent_ = letters.empty() ? "" : letters.front().traceparent;
  if (letters.empty())
    return std::nullopt;
  return std::move(letters.front());
}

/// Its handler is not in this process' configuration, so what its policy allows is not known here.
void RetryTask::leave_to_others(const ledger::DueLetter& due) {
  const auto later = options_of(due.handler).program_error_retry;
  if (!letters_.take(*session_, due, later))
    return;
  to_give_back_ = due;
  give_back();
  warn(
      fmt::format("dead letter {} is of {}, which this process does not have: left to one that has "
                  "it, or to `dlq replay`",
                  due.id, handlers::handler_text(due.handler)));
}

Replay& RetryTask::replay() {
  if (!replay_) {
    replay_ = std::make_unique<Replay>(
        frame_, context_.registry, context_.registration,
        [this](const ledger::DeadLetter& letter) { return source_(letter); });
  }
  return *replay_;
}

void RetryTask::end(const ledger::DueLetter& due, const ReplayResult& result,
                    const FailureOptions& options) {
  const auto most = retries_allowed(options);
  const auto tries = due.retries + 1;
  const auto after = after_retry(result, tries >= most);
  if (after == AfterRetry::kResolved) {
    return emit(Step::kRetried, due,
                fmt::format("dead letter {} is {}", due.id,
                            result.kind == ReplayResult::Kind::kApplied ? "applied" : "resolved"));
  }
  if (after == AfterRetry::kGivenBack) {
    give_back();
    return warn(fmt::format("dead letter {}: {}; tried again", due.id, result.why));
  }
  const bool failed = result.kind == ReplayResult::Kind::kFailed;
  ledger::RetryFailure failure;
  failure.reason = failed ? result.failure.reason : ledger::dead_reason::kError;
  failure.sqlstate = result.failure.sqlstate;
  failure.error = result.why;
  failure.detail = result.failure.detail;
  failure.last = after == AfterRetry::kWaits;
  letters_.failed(*session_, due, failure);
  const auto why = failed ? told(result.failure, context_.options.log.error_details) : result.why;
  if (failure.last)
    return tell_dead(due, fmt::format("{} (retry {} of {})", why, tries, most));
  emit(Step::kRetryLater, due,
       fmt::format("{} (retry {} of {}, the next in {})", why, tries, most,
                   config::format_duration(delay_behind(options, tries))));
}

void RetryTask::give_back() {
  if (!to_give_back_)
    return;
  letters_.give_back(*session_, *to_give_back_,
                     options_of(to_give_back_->handler).program_error_retry);
  to_give_back_.reset();
}

void RetryTask::give_up(const ledger::DueLetter& due, const std::string& why) {
  letters_.give_up(*session_, due, ledger::dead_reason::kError, why);
  tell_dead(due, why);
}

void RetryTask::tell_dead(const ledger::DueLetter& due, const std::string& why) const {
  emit(Step::kDeadLettered, due, why + letter_advice(context_.options.invocation, due.id));
  context_.frame.letter_stored->ring();
}

const FailureOptions& RetryTask::options_of(const std::string& handler) const {
  const auto known = by_handler_.find(handler);
  return known == by_handler_.end() ? context_.options.failures : *known->second;
}

}  // namespace pawl::engine
