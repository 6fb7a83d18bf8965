#include "engine/hand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/blame.hpp"
#include "engine/halt_texts.hpp"
#include "engine/last_step.hpp"
#include "engine/retries.hpp"
#include "engine/set_aside.hpp"
#include "message/record_digest.hpp"
#include "message/traceparent.hpp"

namespace pawl::engine {
namespace {

using How = Landing::How;

/// How long to wait for leave to run a message. The thread waits, and not the message in its
/// window, because each message that is turned away would make room for the next one. Not longer:
/// calls that have run wait for the session.
constexpr std::chrono::milliseconds kGateWait{20};
/// The same for a call that has run: it keeps no session waiting.
constexpr std::chrono::milliseconds kGateWaitToStore{100};

Landing later(std::chrono::steady_clock::duration wait) {
  Landing landing{How::kLater};
  landing.wait = wait;
  return landing;
}

Landing not_run(std::chrono::steady_clock::duration wait = {}) {
  auto landing = later(wait);
  landing.not_run = true;
  return landing;
}

Landing unstored(std::chrono::steady_clock::duration wait) {
  auto landing = later(wait);
  landing.unstored = true;
  return landing;
}

Landing away(How how, const std::string& why) {
  Landing landing{how};
  landing.why = why;
  return landing;
}

Message view_of(const Errand& errand) {
  return errand.entry->item.record.view(errand.partition->name.topic, errand.partition->topic_id);
}

/// As of now, for a transaction that begins behind this.
ledger::Fence fence_of(const Errand& errand) {
  auto fence = errand.partition->fence();
  fence.predecessor = errand.entry->predecessor;
  return fence;
}

ledger::RecordAhead record_of(const Errand& errand) {
  return {errand.entry->offset(), errand.entry->item.leader_epoch,
          message::record_digest(view_of(errand))};
}

}  // namespace

Hand::Hand(Context& context)
    : context_(context),
      session_(context, WorkerSession::Whose::kHand),
      processor_(context.frame),
      backoff_(context.options.postgres.retry_initial, context.options.postgres.retry_max) {}

std::optional<WorkerSession::Clock::time_point> Hand::make_ready() {
  if (const auto next_try = connect())
    return next_try;
  if (session_.may_begin())
    return std::nullopt;
  return connect();
}

std::optional<WorkerSession::Clock::time_point> Hand::connect() {
  switch (session_.ensure()) {
    case WorkerSession::State::kNone:
      return session_.next_try();
    case WorkerSession::State::kNew:
      processor_.forget();
      if (session_.take_end() == WorkerSession::End::kLost)
        lost_after_ = last_used_;
      return std::nullopt;
    case WorkerSession::State::kSame:
      break;
  }
  return std::nullopt;
}

Landing Hand::run(const Errand& errand) {
  if (errand.partition->winding_up)
    return not_run();
  errand.entry->head.prepared_anew_for.reset();
  auto landing = try_once(errand);
  // A session that was made anew for it prepares its statements anew.
  if (landing.how == How::kLater && landing.here)
    landing = try_once(errand);
  return landing;
}

Landing Hand::try_once(const Errand& errand) {
  if (auto landing = refused(errand))
    return *std::move(landing);
  if (errand.failed)
    return fail(errand);
  auto pass = ask_to_run(errand);
  if (!pass)
    return not_run();
  return apply(errand, false, std::move(pass));
}

/// Its message is not to run any more.
Landing Hand::fail(const Errand& errand) {
  Attempt attempt{Undertaking::kMessage, *errand.failed};
  attempt.offset = errand.entry->offset();
  attempt.subject = identify(context_.router, view_of(errand));
  attempt.counted = true;  // by the marks
  return follow(errand, attempt);
}

/// While a message runs alone the application's code runs nowhere else, because it would not be
/// known which of them ended the process. pawl's own calls run none: they go on, or a slow one
/// would keep the others waiting until the message could begin.
RunGate::Pass Hand::ask_to_run(const Errand& errand) {
  // A suspect has its leave already.
  return errand.entry->runs_code() && !errand.alone ? context_.gate.among_others(kGateWait)
                                                    : context_.gate.beside_all();
}

/// Nullopt: its message may run.
std::optional<Landing> Hand::refused(const Errand& errand) {
  if (const auto next_try = make_ready())
    return not_run(*next_try - WorkerSession::Clock::now());
  // The server may have lost commits with the session. Who acquired since has asked the register.
  if (lost_after_ && errand.partition->acquired_at <= *lost_after_)
    return away(How::kAskAgain, "the connection was reopened");
  // As a worker does behind each acquire.
  if (errand.partition->acquired_at > forgot_at_) {
    forgot_at_ = WorkerSession::Clock::now();
    processor_.forget();
  }
  return std::nullopt;
}

Landing Hand::apply(const Errand& errand, bool nothing_to_call, RunGate::Pass pass) {
  const auto& partition = *errand.partition;
  Subject subject;
  try {
    const auto message = view_of(errand);
    const FinishStep finish(context_.offsets.ahead(), fence_of(errand), record_of(errand));
    MessageStep step{message, partition.source, errand.entry->item.leader_epoch, finish};
    step.nothing_to_call = nothing_to_call;
    step.taken_at = errand.entry->item.taken_at;
    step.is_first_try = errand.entry->head.attempts == 0;
    Landing landing;
    {
      const auto watched =
          session_.watch(partition.name, partition.previous_owner, context_.longest_handler);
      landing.outcome = processor_.process(*session_, step, subject);
    }
    applied(errand, landing, subject);
    return landing;
  } catch (...) {
    pass = {};
    Attempt attempt{Undertaking::kMessage, session_.why_failed()};
    attempt.offset = errand.entry->offset();
    attempt.subject = std::move(subject);
    return follow(errand, attempt);
  }
}

void Hand::applied(const Errand& errand, const Landing& landing, const Subject& subject) {
  context_.lock_waits.ended(errand.partition->name, errand.entry->offset());
  if (landing.outcome == ledger::Outcome::kApplied ||
      landing.outcome == ledger::Outcome::kUnchecked)
    context_.applied(subject.binding->label);
  backoff_.reset();
  last_used_ = WorkerSession::Clock::now();
  if (session_->take_published())
    context_.frame.outbox_written->ring();
}

std::variant<Landing, std::unique_ptr<LeasedCall>> Hand::begin_call(const Errand& errand,
                                                                    RunGate::Pass& pass) {
  if (errand.partition->winding_up)
    return not_run();
  if (auto landing = refused(errand))
    return *std::move(landing);
  pass = ask_to_run(errand);
  if (!pass)
    return not_run();
  const auto& partition = *errand.partition;
  Subject subject;
  try {
    const auto message = view_of(errand);
    const FinishStep finish(context_.offsets.ahead(), fence_of(errand), record_of(errand));
    std::unique_ptr<LeasedCall> call;
    {
      const auto watched =
          session_.watch(partition.name, partition.previous_owner, std::chrono::milliseconds(0));
      const MessageStep step{message, partition.source, errand.entry->item.leader_epoch, finish};
      call = processor_.prepare_call(*session_, step, subject);
    }
    backoff_.reset();
    last_used_ = WorkerSession::Clock::now();
    if (call)
      return call;
  } catch (...) {
    pass = {};
    Attempt attempt{Undertaking::kMessage, session_.why_failed()};
    attempt.offset = errand.entry->offset();
    attempt.subject = std::move(subject);
    return follow(errand, attempt);
  }
  return apply(errand, true, std::move(pass));
}

void Hand::make_call(const Context& context, const Errand& errand, LeasedCall& call) {
  const auto message = view_of(errand);
  call.run(message);
  if (!context.observers.every_step())
    return;
  auto event = event_of(Step::kCallFinished, message);
  event.key = call.lease().key;
  event.handler = call.binding().label;
  context.observers.emit(event);
}

/// A handler's `record` is the application's code, and its functions for keys and duplicates are;
/// what became of a call pawl itself stores.
RunGate::Pass Hand::ask_to_store(Context& context, const Errand& errand) {
  const auto& handler = *errand.entry->binding;
  return handler.liability == handlers::Liability::kAny || handler.leased->has_record()
             ? context.gate.among_others(kGateWaitToStore)
             : context.gate.beside_all();
}

Landing Hand::end_call(const Errand& errand, LeasedCall& call, RunGate::Pass pass) {
  if (const auto next_try = make_ready())
    return unstored(*next_try - WorkerSession::Clock::now());
  const auto& partition = *errand.partition;
  Subject subject;
  try {
    const auto message = view_of(errand);
    const FinishStep finish(context_.offsets.ahead(), fence_of(errand), record_of(errand));
    MessageStep step{message, partition.source, errand.entry->item.leader_epoch, finish};
    step.call = &call;
    step.taken_at = errand.entry->item.taken_at;
    Landing landing;
    {
      const auto watched =
          session_.watch(partition.name, partition.previous_owner, context_.longest_handler);
      landing.outcome = processor_.process(*session_, step, subject);
    }
    applied(errand, landing, subject);
    return landing;
  } catch (...) {
    pass = {};
    Attempt attempt{Undertaking::kMessage, session_.why_failed()};
    attempt.offset = errand.entry->offset();
    attempt.subject = std::move(subject);
    if (call.ended() || call.is_given_up())
      return follow(errand, attempt);
    context_.lock_waits.failed(errand.partition->name, errand.entry->offset(), attempt.failure);
    // What the call brought is not to be lost with the connection.
    if (attempt.failure.kind == postgres::FailureClass::kConnection) {
      session_.lose(attempt.failure.text);
    } else {
      if (attempt.failure.kind == postgres::FailureClass::kSessionChanged)
        (void)session_.restore();
      else if (is_stale_statement(attempt.failure) || session_.is_of_old_schema(attempt))
        session_.renew();
      const auto text = fmt::format("cannot store the outcome of a call: {}", attempt.failure.text);
      auto event = warning_event(Warning::kFailureNotStored, text);
      event.message_offset = errand.entry->offset();
      event.sqlstate = attempt.failure.sqlstate;
      emit(errand, event);
    }
    auto landing = unstored(backoff_.next());
    landing.waited_for_lock = attempt.failure.waited_for_lock();
    return landing;
  }
}

Landing Hand::follow(const Errand& errand, const Attempt& failed) {
  if (session_.is_of_old_schema(failed)) {
    session_.renew();
    auto landing = later({});
    landing.here = true;
    return landing;
  }
  auto& head = errand.entry->head;
  const auto attempt = with_blame(context_, session_, failed, head);
  const auto& options = failure_options(context_.options, attempt);
  const auto action = decide(attempt, head, policy_of(options, attempt, context_.breaker));
  context_.lock_waits.failed(errand.partition->name, errand.entry->offset(), attempt.failure);
  if (leaves_doubt(attempt))
    tell(errand, Step::kCommitOutcomeUnknown, attempt.failure.text);
  if (!is_stale_statement(attempt.failure))
    head.prepared_anew_for.reset();
  say(errand, attempt, action);
  return act(errand, attempt, action);
}

Landing Hand::act(const Errand& errand, const Attempt& attempt, const Action& action) {
  using What = Action::What;
  const auto& failure = attempt.failure;
  switch (action.what) {
    case What::kReconnect: {
      session_.lose(failure.text);
      const bool suspect = action.company == Action::Company::kAlone;
      auto landing = away(How::kLost, failure.text);
      // Nothing of it can have been stored.
      if (!suspect && !failure.in_doubt) {
        landing = later(backoff_.next());
        landing.no_answer = true;
      }
      landing.suspect = suspect;
      return landing;
    }
    case What::kGiveWay:
      return away(How::kGiveWay, failure.text);
    case What::kAskAgain:
      return away(How::kAskAgain, failure.text);
    case What::kPrepareAnew:
      errand.entry->head.prepared_anew_for = attempt.offset;
      session_.renew();
      {
        // Another hand's session may be as stale as this one was.
        auto landing = later({});
        landing.here = true;
        return landing;
      }
    case What::kRestoreSession: {
      (void)session_.restore();
      auto landing = later({});
      landing.here = true;
      return landing;
    }
    case What::kWaitForRoom:
    case What::kGoOn:
      return later(backoff_.next());
    case What::kTryAgain: {
      if (failure.pending)
        return later(*failure.pending);
      if (failure.waited_for_lock()) {
        auto landing = later({});
        landing.waited_for_lock = true;
        return landing;
      }
      const auto initial = context_.options.postgres.retry_initial;
      return later(action.wait == Action::Wait::kJitter ? Backoff(initial, initial).next()
                                                        : backoff_.next());
    }
    case What::kCount:
      return count_and_decide(errand, attempt);
    case What::kRetry:
      return later(failure.retry_after);
    case What::kSetAside:
      return set_aside(errand, attempt);
    case What::kHaltAtMessage:
    case What::kHaltProgram:
    case What::kHaltFlood: {
      Landing landing{How::kHalt};
      landing.halt = halt_of(failure_options(context_.options, attempt), attempt, action.what,
                             errand.entry->head.attempts);
      return landing;
    }
  }
  return later(backoff_.next());
}

/// The attempt counts, whoever runs the message next.
Landing Hand::count_and_decide(const Errand& errand, const Attempt& attempt) {
  auto& head = errand.entry->head;
  try {
    const auto watched = session_.watch(errand.partition->name, errand.partition->previous_owner,
                                        std::chrono::milliseconds(0));
    const auto attempts = context_.offsets.ahead().count_attempt(
        *session_, errand.partition->fence(), record_of(errand));
    if (!attempts)
      return away(How::kGiveWay, "another process owns it");
    head.attempts = *attempts;
  } catch (...) {
    return follow(errand, note_failed(attempt, session_.why_failed()));
  }
  auto counted = attempt;
  counted.counted = true;
  const auto& options = failure_options(context_.options, attempt);
  const auto action = decide(counted, head, policy_of(options, counted, context_.breaker));
  if (action.what == Action::What::kRetry) {
    counted.failure.retry_after =
        std::max(attempt.failure.retry_after, wait_before_retry(options, head.attempts));
  }
  tell_failed(errand, counted, action.what, head.attempts);
  return act(errand, counted, action);
}

Landing Hand::set_aside(const Errand& errand, const Attempt& attempt) {
  const auto& options = failure_options(context_.options, attempt);
  const auto& partition = *errand.partition;
  const auto epoch = errand.entry->item.leader_epoch;
  const auto message = view_of(errand);
  const auto burial = burial_of(options, attempt, message, errand.entry->head.attempts, epoch);
  try {
    const auto watched =
        session_.watch(partition.name, partition.previous_owner, std::chrono::milliseconds(0));
    const FinishStep finish(context_.offsets.ahead(), fence_of(errand), record_of(errand));
    MessageStep step{message, partition.source, epoch, finish};
    step.taken_at = errand.entry->item.taken_at;
    processor_.set_aside(*session_, step, attempt.subject, options.on_failure, burial);
  } catch (...) {
    return follow(errand, note_failed(attempt, session_.why_failed()));
  }
  context_.breaker.count(burial.handler, attempt.failure.way());
  Landing landing;
  landing.outcome = options.on_failure == FailurePolicy::kSkip ? ledger::Outcome::kSkipped
                                                               : ledger::Outcome::kDead;
  return landing;
}

void Hand::tell(const Errand& errand, Step step, std::string_view detail) const {
  Event event{step};
  event.detail = detail;
  emit(errand, event);
}

void Hand::tell_failed(const Errand& errand, const Attempt& attempt, Action::What what,
                       std::uint32_t attempts) const {
  emit_failed(attempt, what, attempts, failure_options(context_.options, attempt),
              context_.options.log.error_details, [&](const Event& event) { emit(errand, event); });
}

void Hand::emit(const Errand& errand, Event event) const {
  event.topic = errand.partition->name.topic;
  event.partition = errand.partition->name.partition;
  event.offset = errand.entry->offset();
  if (is_of_message(event.step))
    event.traceparent = message::traceparent_of(view_of(errand));
  context_.observers.emit(event);
}

void Hand::say(const Errand& errand, const Attempt& attempt, const Action& action) const {
  switch (action.say) {
    case Action::Say::kNothing:
      return;
    case Action::Say::kFailed:
      return tell_failed(errand, attempt, action.what);
    case Action::Say::kWarning: {
      const auto text = warning_text(attempt);
      return emit(errand, warning_event(warning_of(attempt), text));
    }
  }
}

}  // namespace pawl::engine
