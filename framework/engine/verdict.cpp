#include "engine/verdict.hpp"

namespace pawl::engine {
namespace {

using postgres::FailureClass;
using Company = Action::Company;
using Say = Action::Say;
using Wait = Action::Wait;
using What = Action::What;

constexpr Action kPrepareAnew{What::kPrepareAnew, Wait::kAcquireBackoff, Say::kWarning};
constexpr Action kAskAgain{What::kAskAgain, Wait::kAcquireBackoff, Say::kWarning};

/// The session was made anew for this message before, and that was of no help.
bool prepared_anew(const Attempt& attempt, const Head& head) {
  return head.prepared_anew_for == attempt.offset;
}

/// Some policy has to be applied.
Action end_of_attempts(const Attempt& attempt, const Policy& policy) {
  // What a handler committed by itself cannot be taken back, and a letter would hide it.
  if (policy.on_failure == FailurePolicy::kHalt ||
      attempt.failure.kind == FailureClass::kTransactionEnded)
    return {What::kHaltAtMessage};
  return {policy.breaker_open ? What::kHaltFlood : What::kSetAside};
}

/// The failure is the message's.
Action blame_message(const Attempt& attempt, const Head& head, const Policy& policy) {
  if (!attempt.counted)
    return {What::kCount};
  if (may_pass_later(attempt.failure) && !head.one_try_only && head.attempts < policy.most_attempts)
    return {What::kRetry};
  return end_of_attempts(attempt, policy);
}

Action decide_message(const Attempt& attempt, const Head& head, const Policy& policy) {
  if (attempt.failure.pending)
    return {What::kTryAgain};  // once the key may be free
  if (attempt.failure.halt)
    return {What::kHaltAtMessage};
  switch (attempt.failure.kind) {
    case FailureClass::kContention:
      // Each wait for a lock takes the worker from its other partitions for as long as it lasts.
      return {What::kTryAgain,
              attempt.failure.waited_for_lock() ? Wait::kRetryBackoff : Wait::kJitter,
              Say::kFailed};
    case FailureClass::kResource:
      return {What::kWaitForRoom, Wait::kNone, Say::kFailed};
    case FailureClass::kProgram:
      if (is_stale_statement(attempt.failure) && !prepared_anew(attempt, head))
        return {What::kPrepareAnew, Wait::kNone, Say::kFailed};
      return {What::kHaltProgram, Wait::kNone, Say::kFailed};
    default:
      return blame_message(attempt, head, policy);
  }
}

Action decide_batch(const Attempt& attempt, const Head& head, const Policy& policy) {
  switch (attempt.failure.kind) {
    case FailureClass::kProgram:
    case FailureClass::kReadOnly:
    case FailureClass::kMessage:
      // Whose fault it is shows once fewer go together.
      return {What::kTryAgain, Wait::kNone, Say::kFailed, Company::kHalved};
    case FailureClass::kContention:
    case FailureClass::kResource: {
      auto action = decide_message(attempt, head, policy);
      action.company = Company::kFewer;
      return action;
    }
    default:
      return decide_message(attempt, head, policy);
  }
}

Action decide_lost_connection(const Attempt& attempt, const Head& head, const Policy& policy) {
  if (head.attempts < policy.most_attempts && head.broken_connections < kMostBrokenConnections)
    return {What::kGoOn};
  return end_of_attempts(attempt, policy);
}

/// Nothing of it is anybody's attempt.
Action decide_end_of_log(const Attempt& attempt, const Head& head) {
  constexpr Action kLater{What::kTryAgain, Wait::kRetryBackoff, Say::kWarning};
  switch (attempt.failure.kind) {
    case FailureClass::kContention:
      return kLater;
    case FailureClass::kResource:
      return {What::kWaitForRoom, Wait::kNone, Say::kWarning};
    case FailureClass::kProgram:
      if (is_stale_statement(attempt.failure) && !prepared_anew(attempt, head))
        return kPrepareAnew;
      return {What::kHaltProgram};
    default:
      return {What::kHaltProgram};
  }
}

Action decide_note(const Attempt& attempt, const Head& head) {
  if (is_stale_statement(attempt.failure) && !prepared_anew(attempt, head))
    return kPrepareAnew;
  return {What::kTryAgain, Wait::kRetryBackoff, Say::kWarning};
}

}  // namespace

bool runs_handler(Undertaking what) {
  return what == Undertaking::kMessage || what == Undertaking::kPipeline ||
         what == Undertaking::kBatch;
}

Action decide(const Attempt& attempt, const Head& head, const Policy& policy) {
  const auto& failure = attempt.failure;
  if (failure.kind == FailureClass::kConnection) {
    // An outage is no message's fault. But SQL that crashes its server process breaks only its own
    // connection, without a word of the server's, and so again at every attempt. In doubt: should
    // the message be stored after all, it will not be in hand again.
    const bool suspect = runs_handler(attempt.what) && attempt.subject.handler_begun &&
                         (attempt.breaks_connections || !postgres::is_goodbye(failure.sqlstate));
    return {What::kReconnect, Wait::kNone, Say::kNothing,
            suspect ? Company::kAlone : Company::kAsBefore};
  }
  // An earlier transaction of the session left them behind.
  if (failure.kind == FailureClass::kSessionChanged)
    return {What::kRestoreSession, Wait::kNone, Say::kNothing};
  if (attempt.what == Undertaking::kHalt)
    return is_stale_statement(failure) ? kPrepareAnew : kAskAgain;
  if (attempt.what == Undertaking::kAcquire) {
    return is_stale_statement(failure)
               ? kPrepareAnew
               : Action{What::kTryAgain, Wait::kAcquireBackoff, Say::kWarning};
  }
  switch (failure.kind) {
    case FailureClass::kFenced:
    case FailureClass::kRowMissing:
      return {What::kGiveWay};
    case FailureClass::kOutOfOrder:
      return kAskAgain;
    default:
      break;
  }
  switch (attempt.what) {
    case Undertaking::kMessage:
      return decide_message(attempt, head, policy);
    case Undertaking::kBatch:
      return decide_batch(attempt, head, policy);
    case Undertaking::kPipeline:
      // Each says itself, alone, what is the matter with it.
      return {What::kTryAgain, Wait::kNone, Say::kNothing, Company::kHalved};
    case Undertaking::kLostConnection:
      return decide_lost_connection(attempt, head, policy);
    case Undertaking::kEndOfLog:
      return decide_end_of_log(attempt, head);
    case Undertaking::kNote:
    case Undertaking::kHalt:
    case Undertaking::kAcquire:
      break;
  }
  return decide_note(attempt, head);
}

bool shows_room(const Attempt& attempt) {
  const bool tried = attempt.what == Undertaking::kMessage || attempt.what == Undertaking::kBatch;
  return tried && attempt.failure.kind != FailureClass::kResource &&
         attempt.failure.kind != FailureClass::kConnection;
}

bool leaves_doubt(const Attempt& attempt) {
  return attempt.failure.in_doubt && attempt.what != Undertaking::kNote &&
         attempt.what != Undertaking::kHalt && attempt.what != Undertaking::kAcquire;
}

}  // namespace pawl::engine
