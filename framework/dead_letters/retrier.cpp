#include "dead_letters/retrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "config/units.hpp"
#include "dead_letters/after_retry.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "handlers/handler_statement.hpp"
#include "ledger/consumers.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetryInitial{1000};
constexpr milliseconds kRetryMax{30000};
/// Behind a message on probation, which has the process to itself.
constexpr milliseconds kTurnedAway{20};
/// Without a letter for so long its sessions are closed.
constexpr milliseconds kIdle{1000};
/// A lease of a call that has ended is kept for so long at most.
constexpr std::chrono::minutes kKept{5};

/// None where the policy is another one by now.
std::int32_t retries_allowed(const FailureOptions& options) {
  return options.on_failure == FailurePolicy::kRetryLater
             ? static_cast<std::int32_t>(options.retry_later.size())
             : 0;
}

/// Of a dead letter with more attempts than are allowed.
std::string why_no_more(const FailureOptions& options, const ledger::DueLetter& due) {
  if (options.on_failure != FailurePolicy::kRetryLater)
    return "on_failure of its handler is no longer \"retry-later\"";
  return fmt::format(
      "the process of retry {} stopped before the result was stored, or failures.retry_later has "
      "fewer delays now",
      due.retries);
}

/// The delay behind the try after which `retries` tries were made; behind the last one it only says
/// when a try whose process died is noticed.
milliseconds delay_behind(const FailureOptions& options, std::int32_t retries) {
  const auto last = options.retry_later.size() - 1;
  return options.retry_later[std::min(static_cast<std::size_t>(std::max(retries, 0)), last)];
}

}  // namespace

const FailureOptions& RetryPolicies::of(const std::string& handler) const {
  const auto known = by_handler.find(handler);
  return known == by_handler.end() ? common : *known->second;
}

bool RetryPolicies::any() const {
  return std::ranges::any_of(
      by_handler, [](const auto& handler) { return retries_allowed(*handler.second) > 0; });
}

void warn_of_retries(const Observers& observers, const std::string& text,
                     std::string_view sqlstate) {
  observers.emit(warning_event(Warning::kDelayedRetryUnavailable, text, sqlstate));
}

// A lost connection is the workers' to tell.
bool try_retrying(const Observers& observers, const std::function<bool()>& what) {
  try {
    return what();
  } catch (const postgres::InDoubt&) {
    return false;  // each change names what it changes, and is made again
  } catch (const postgres::Error& error) {
    if (error.failure() != postgres::FailureClass::kConnection)
      warn_of_retries(observers, error.what(), error.sqlstate());
  } catch (const std::exception& error) {
    warn_of_retries(observers, error.what());
  }
  return false;
}

std::unique_ptr<postgres::Session> connect_for_retries(const Context& context) {
  const auto& options = context.options;
  auto settings = session_settings(options);
  settings.application_name = "pawl retry later";
  settings.by_index = true;
  auto session = std::make_unique<postgres::Session>(settings);
  // Another database than the one we began with; the workers deal with that.
  if (!ledger::still_registered(*session, options.postgres.schema, options.kafka.cluster,
                                options.kafka.group, context.registration))
    return nullptr;
  return session;
}

Retrier::Retrier(Context& context, const FrameContext& frame, const RetryPolicies& policies,
                 Replay::Fetch fetch, DueQueue& queue)
    : context_(context),
      frame_(frame),
      policies_(policies),
      fetch_(std::move(fetch)),
      queue_(queue),
      letters_(context.options.postgres.schema, context.registration.consumer),
      view_(context.options.postgres.schema, context.registration.consumer) {}

void Retrier::run() {
  Backoff backoff(kRetryInitial, kRetryMax);
  std::optional<ledger::DueLetter> due;
  while (!queue_.ending()) {
    // Until its try is given back it stays in hand: its row looks as if a process had ended.
    if (!to_give_back_)
      due = queue_.take(kIdle, kept_);
    if (!due) {
      rest();
      continue;
    }
    const bool worked = try_retrying(context_.observers, [&] {
      if (!connect())
        return false;
      if (to_give_back_)
        give_back();
      else
        try_again(*due);
      return true;
    });
    if (!worked) {
      session_.reset();
      // A call that it made is not to be made again.
      if (!replay_ || !replay_->has_call())
        replay_.reset();
    }
    if (!to_give_back_)
      keep_if_called(*due);
    if (worked) {
      backoff.reset();
    } else {
      queue_.rest(backoff.next());
    }
  }
}

/// The letter that was in hand.
void Retrier::keep_if_called(const ledger::DueLetter& due) {
  const bool called = replay_ && replay_->has_call();
  if (!called) {
    kept_.reset();
  } else if (kept_ != due.id) {
    kept_ = due.id;
    kept_until_ = Clock::now() + kKept;
  }
  queue_.done(due, called);
}

void Retrier::rest() {
  if (kept_ && Clock::now() < kept_until_)
    return;
  if (kept_)
    queue_.release(*kept_);
  kept_.reset();
  session_.reset();
  replay_.reset();
}

bool Retrier::connect() {
  if (!session_ || !session_->alive())
    session_ = connect_for_retries(context_);
  return session_ != nullptr;
}

void Retrier::warn(const std::string& text) const {
  warn_of_retries(context_.observers, text);
}

void Retrier::emit(Event event, const ledger::DueLetter& due) const {
  event.topic = due.partition.topic;
  event.partition = due.partition.partition;
  event.offset = due.offset;
  event.handler = due.handler;
  event.dead_letter_id = due.id;
  event.traceparent = traceparent_;
  context_.observers.emit(event);
}

/// No code runs beside a message on probation: if the process ended, nobody could say whose doing
/// it was. The same of a letter that may be why a process ended. False: the process is to end.
RunGate::Pass Retrier::ask_to_run(const ledger::DueLetter& due, bool runs_code) {
  auto& gate = context_.gate;
  while (!queue_.ending()) {
    if (auto leave = !runs_code  ? gate.beside_all()
                     : due.alone ? gate.alone(due.partition)
                                 : gate.among_others())
      return leave;
    queue_.rest(kTurnedAway);
  }
  return {};
}

void Retrier::try_again(ledger::DueLetter due) {
  const auto letter = read(due);
  if (!letter)
    return;
  const auto found = replay().handler_of(*letter);
  const auto* const unreadable = std::get_if<ReplayResult>(&found);
  const auto* const handler =
      unreadable == nullptr ? std::get<const handlers::Binding*>(found) : nullptr;
  // Of the handler that a replay would give its message to: handlers without a name are called by
  // their place, which changes. Where the message cannot be had, of the one that it was of.
  const auto& options = handler == nullptr ? policies_.of(letter->handler) : handler->failures;
  if (due.retries >= retries_allowed(options)) {
    if (!policies_.by_handler.contains(due.handler))
      return leave_to_others(due);
    return give_up(due, fmt::format("{}. Earlier cause: {}", why_no_more(options, due),
                                    letter->located_error()));
  }
  // Not earlier: to read the message from Kafka may take long.
  const bool runs_code = handler != nullptr && handler->runs_code();
  // Without its message nothing runs now, but maybe code next time.
  due.alone = due.alone && (runs_code || unreadable != nullptr);
  auto leave = ask_to_run(due, runs_code);
  if (!leave)
    return;
  // Also where it stays unknown whether it was taken.
  to_give_back_ = due;
  if (letters_.take(*session_, due, delay_behind(options, due.retries + 1))) {
    const auto result = unreadable == nullptr ? replay().one(*letter) : *unreadable;
    leave = {};
    end(due, result, options);
  }
  to_give_back_.reset();
}

/// Nullopt: it is resolved.
std::optional<ledger::DeadLetter> Retrier::read(const ledger::DueLetter& due) {
  ledger::DeadLetterFilter filter;
  filter.ids = {due.id};
  auto letters = view_.list(*session_, filter, 1, true);
  traceparent_ = letters.empty() ? "" : letters.front().traceparent;
  if (letters.empty())
    return std::nullopt;
  return std::move(letters.front());
}

/// Its handler is not in this process' configuration, so what its policy allows is not known here.
void Retrier::leave_to_others(const ledger::DueLetter& due) {
  const auto later = policies_.of(due.handler).program_error_retry;
  if (!letters_.take(*session_, due, later))
    return;
  to_give_back_ = due;
  give_back();
  warn(fmt::format(
      "dead letter {} belongs to {}, which this process does not have. A process that has "
      "the handler, or `dlq replay`, retries it",
      due.id, handlers::handler_text(due.handler)));
}

Replay& Retrier::replay() {
  if (!replay_) {
    // While it waits, messages on probation wait for it, and if it runs alone all others as well.
    replay_ = std::make_unique<Replay>(frame_, context_.registry, context_.registration, fetch_,
                                       Replay::LockWaits::kOne);
  }
  return *replay_;
}

void Retrier::end(const ledger::DueLetter& due, const ReplayResult& result,
                  const FailureOptions& options) {
  const auto most = retries_allowed(options);
  const auto tries = due.retries + 1;
  const auto after = after_retry(result, tries >= most);
  if (after == AfterRetry::kResolved) {
    Event event{Step::kRetrySucceeded};
    event.detail = result.kind == ReplayResult::Kind::kApplied ? "applied" : "already resolved";
    return emit(event, due);
  }
  if (after == AfterRetry::kGivenBack) {
    give_back();
    return warn(fmt::format("dead letter {}: {}. Retrying", due.id, result.why));
  }
  const bool failed = result.kind == ReplayResult::Kind::kFailed;
  ledger::RetryFailure failure;
  failure.reason = failed ? result.failure.reason : ledger::dead_reason::kError;
  failure.sqlstate = result.failure.sqlstate;
  failure.statement = result.failure.statement;
  failure.error = failed ? result.failure.text : result.why;
  failure.detail = result.failure.detail;
  failure.last = after == AfterRetry::kWaits;
  letters_.failed(*session_, due, failure);
  const auto why = failed ? told(result.failure, context_.options.log.error_details) : result.why;
  const auto due_at = ledger::to_string(std::chrono::floor<milliseconds>(
      std::chrono::system_clock::now() + delay_behind(options, tries)));
  std::vector<EventField> fields{{"retry", std::int64_t{failure.last ? tries : tries + 1}},
                                 {"max_retries", std::int64_t{most}}};
  if (!failure.statement.empty())
    fields.push_back({"statement", std::string_view(failure.statement)});
  if (!failure.last)
    fields.push_back({"due_at", std::string_view(due_at)});
  Event event{Step::kRetryScheduled};
  event.detail = why;
  event.reason = failure.reason;
  event.sqlstate = failure.sqlstate;
  event.fields = fields;
  if (failure.last)
    return tell_dead(due, event);
  emit(event, due);
}

void Retrier::give_back() {
  if (!to_give_back_)
    return;
  letters_.give_back(*session_, *to_give_back_,
                     policies_.of(to_give_back_->handler).program_error_retry);
  to_give_back_.reset();
}

void Retrier::give_up(const ledger::DueLetter& due, const std::string& why) {
  letters_.give_up(*session_, due, ledger::dead_reason::kError, why);
  Event event;
  event.detail = why;
  event.reason = ledger::dead_reason::kError;
  tell_dead(due, event);
}

void Retrier::tell_dead(const ledger::DueLetter& due, Event event) const {
  event.step = Step::kMessageDeadLettered;
  emit(event, due);
  context_.frame.letter_stored->ring();
}

}  // namespace pawl::engine
