#include "engine/consequences.hpp"

#include <fmt/format.h>

#include "engine/blame.hpp"
#include "engine/halt_rendering.hpp"
#include "engine/halt_texts.hpp"
#include "engine/last_step.hpp"
#include "engine/retries.hpp"
#include "engine/set_aside.hpp"

namespace pawl::engine {
void Consequences::follow(Partition& partition, const Attempt& attempt) {
  // Nothing of it is stored, and what was fetched is still there: it runs again on the next
  // session.
  if (session_.is_of_old_schema(attempt))
    return session_.renew();
  const auto blamed = with_blame(context_, session_, attempt, partition.head());
  apply(partition, blamed, verdict_on(partition, blamed));
}

Action Consequences::verdict_on(const Partition& partition, const Attempt& attempt) const {
  return decide(attempt, partition.head(),
                policy_of(options_of(attempt), attempt, context_.breaker));
}

void Consequences::apply(Partition& partition, const Attempt& attempt, const Action& action) {
  if (leaves_doubt(attempt)) {
    // Behind the end of the log there is no message (yet).
    const bool at_end = attempt.what == Undertaking::kEndOfLog;
    partition.tell(Step::kCommitOutcomeUnknown,
                   at_end ? partition.held().stored.last() : attempt.offset, attempt.failure.text);
  }
  if (shows_room(attempt))
    partition.has_room();
  context_.lock_waits.failed(partition.name(), attempt.offset, attempt.failure);
  partition.pace().failed(attempt, action.company);
  if (action.company == Action::Company::kAlone && attempt.what == Undertaking::kMessage)
    partition.head().broke_connection = attempt.offset;
  // The statements were no longer stale: should they be again, it is by another change.
  if (!is_stale_statement(attempt.failure))
    partition.head().prepared_anew_for.reset();
  say(partition, attempt, action);
  act(partition, attempt, action);
  partition.back_off(action.wait);
}

void Consequences::act(Partition& partition, const Attempt& attempt, const Action& action) {
  using What = Action::What;
  const auto& failure = attempt.failure;
  switch (action.what) {
    case What::kReconnect:
      return session_.lose(failure.text);
    case What::kGiveWay:
      return give_way(partition, failure.text);
    case What::kAskAgain:
      return partition.acquire_again(false);
    case What::kPrepareAnew:
      return prepare_anew(partition, attempt);
    case What::kRestoreSession:
      return restore_session(partition, attempt);
    case What::kWaitForRoom:
      return partition.wait_for_room(located_text(failure));
    case What::kCount:
      return count_and_decide(partition, attempt);
    case What::kRetry:
      return partition.rest(failure.retry_after);
    case What::kSetAside:
      return set_aside(partition, attempt);
    case What::kHaltAtMessage:
    case What::kHaltProgram:
    case What::kHaltFlood:
      return halt_after_attempt(
          partition, halt_of(options_of(attempt), attempt, action.what, partition.head().attempts));
    case What::kTryAgain:
      if (failure.pending)
        partition.rest(*failure.pending);
      return;
    case What::kGoOn:
      return;
  }
}

void Consequences::say(const Partition& partition, const Attempt& attempt,
                       const Action& action) const {
  const bool asks_again = action.what == Action::What::kAskAgain;
  switch (action.say) {
    case Action::Say::kNothing:
      return;
    case Action::Say::kFailed:
      return tell_failed(partition, attempt, action.what);
    case Action::Say::kWarning:
      return partition.warn(
          warning_of(attempt),
          warning_text(attempt) + (asks_again ? ". Acquiring the partition again" : ""));
  }
}

void Consequences::tell_failed(const Partition& partition, const Attempt& attempt,
                               Action::What what, std::uint32_t attempts) const {
  emit_failed(attempt, what, attempts, options_of(attempt), context_.options.log.error_details,
              [&](const Event& event) { partition.emit(event, attempt.offset); });
}

void Consequences::prepare_anew(Partition& partition, const Attempt& attempt) {
  if (attempt.what != Undertaking::kAcquire && attempt.what != Undertaking::kHalt)
    partition.head().prepared_anew_for = attempt.offset;
  session_.renew();
  decide_halt_again(partition, attempt);
}

void Consequences::restore_session(Partition& partition, const Attempt& attempt) {
  (void)session_.restore();
  decide_halt_again(partition, attempt);
}

/// A halt that could not be stored is decided again: what led to it may not come up by itself.
/// Before the pause that decide() wants.
void Consequences::decide_halt_again(Partition& partition, const Attempt& attempt) {
  if (attempt.what == Undertaking::kHalt)
    partition.acquire_again(false);
}

void Consequences::count_and_decide(Partition& partition, const Attempt& attempt) {
  if (!count_attempt(partition, attempt)) {
    tell_failed(partition, attempt, Action::What::kCount);
    return;
  }
  const auto attempts = partition.head().attempts;
  auto counted = attempt;
  counted.counted = true;
  const auto action = verdict_on(partition, counted);
  if (action.what == Action::What::kRetry) {
    counted.failure.retry_after =
        std::max(attempt.failure.retry_after, wait_before_retry(options_of(attempt), attempts));
  }
  tell_failed(partition, counted, action.what, attempts);
  apply(partition, counted, action);
}

/// False: the register could not be asked, or the partition is no longer ours; that is dealt with.
bool Consequences::count_attempt(Partition& partition, const Attempt& attempt) {
  try {
    const auto attempts = context_.offsets.record_attempt(*session_, partition.name(),
                                                          *partition.held().epoch, attempt.offset);
    if (!attempts) {
      give_way(partition);
      return false;
    }
    partition.head().attempts = *attempts + partition.head().counted_ahead;
    return true;
  } catch (...) {
    follow(partition, note_failed(attempt, session_.why_failed()));
    return false;
  }
}

bool Consequences::count_broken_connection(Partition& partition) {
  const auto& item = partition.inbox().front();
  auto& broke = partition.head().broke_connection;
  if (broke != item.record.offset()) {
    broke.reset();
    return true;
  }
  Attempt attempt{Undertaking::kLostConnection};
  attempt.offset = item.record.offset();
  attempt.subject = identify(context_.router, partition.view(item));
  attempt.failure.text =
      "the connection of its handler to PostgreSQL broke in consecutive attempts";
  attempt.failure.reason = ledger::dead_reason::kError;
  // Until the register has it, it is to be counted still.
  if (!count_attempt(partition, attempt))
    return false;
  broke.reset();
  ++partition.head().broken_connections;
  const auto action = verdict_on(partition, attempt);
  apply(partition, attempt, action);
  return action.what == Action::What::kGoOn;
}

void Consequences::give_way(Partition& partition, std::string_view why) {
  partition.tell(Step::kPartitionFenced, partition.held().stored.last(), why);
  partition.acquire_again(true);
}

void Consequences::set_aside(Partition& partition, const Attempt& attempt) {
  const auto& options = options_of(attempt);
  const auto& item = partition.inbox().front();
  const auto message = partition.view(item);
  const auto burial =
      burial_of(options, attempt, message, partition.head().attempts, item.record.leader_epoch());
  try {
    const AdvanceStep advance(context_.offsets, partition.name(), partition.step_over(item));
    MessageStep step{message, partition.held().source, item.record.leader_epoch(), advance};
    step.taken_at = item.taken_at;
    processor_.set_aside(*session_, step, attempt.subject, options.on_failure, burial);
  } catch (...) {
    follow(partition, note_failed(attempt, session_.why_failed()));
    return;
  }
  context_.breaker.count(burial.handler, attempt.failure.way());
  partition.moved_past();
}

void Consequences::halt_after_attempt(Partition& partition, const AttemptHalt& of) {
  // Reported once for each partition that halts.
  if (of.halt.kind == ledger::halt_kind::kCircuitBreaker && !partition.status().halted) {
    Event event{Step::kCircuitBreakerOpened};
    event.topic = partition.name().topic;
    event.partition = partition.name().partition;
    event.offset = partition.held().stored.last();
    event.message_offset = of.halt.message_offset;
    event.handler = of.halt.handler;
    const auto text = rendered(of.halt, context_.options, partition.name()).what;
    event.detail = text;
    context_.observers.emit(event);
  }
  halt(partition, of.halt, of.retry_after);
}

void Consequences::halt(Partition& partition, const ledger::Halt& halt,
                        std::optional<std::chrono::milliseconds> retry_after) {
  try {
    if (!context_.offsets.halt(*session_, partition.name(), *partition.held().epoch, halt)) {
      give_way(partition);
      return;
    }
  } catch (const std::exception&) {
    Attempt attempt{Undertaking::kHalt, session_.why_failed()};
    attempt.about = rendered(halt, context_.options, partition.name()).what;
    attempt.offset = partition.held().stored.last();
    follow(partition, attempt);
    return;
  }
  if (!retry_after)
    context_.tried_halts.add(partition.name(), partition.held().stored);
  // What was fetched goes with the halt.
  const auto traceparent = partition.traceparent_of(halt.message_offset);
  if (partition.halted(halt_text(halt, context_.options, partition.name()), retry_after))
    partition.tell_halted(halt, traceparent);
}

}  // namespace pawl::engine
