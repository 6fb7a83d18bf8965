#include "engine/halt_texts.hpp"

#include <fmt/format.h>

#include "config/invocation.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "engine/set_aside.hpp"
#include "ledger/instant.hpp"
#include "text/bounded.hpp"

namespace pawl::engine {
namespace {

namespace code = ledger::halt_code;
namespace parameter = ledger::halt_parameter;

void set(ledger::Halt& halt, const char* name, const std::string& value) {
  if (!value.empty())
    halt.parameters.insert_or_assign(name, value);
}

const char* code_of(const Attempt& attempt, Action::What what) {
  switch (what) {
    case Action::What::kHaltProgram:
      return attempt.what == Undertaking::kEndOfLog ? code::kLogEndNotStored : code::kProgramError;
    case Action::What::kHaltFlood:
      return code::kCircuitBreakerOpen;
    default:
      break;
  }
  if (attempt.failure.reason == ledger::dead_reason::kCrash)
    return code::kProcessCrashed;
  return attempt.failure.kind == postgres::FailureClass::kTransactionEnded ? code::kTransactionEnded
                                                                           : code::kMessageFailed;
}

}  // namespace

std::string rights_hint(const InvocationOptions& invocation, const postgres::Error& error) {
  return error.is_of_set_up() ? ". Show missing privileges:\n  " + command_text(invocation, "check")
                              : "";
}

Warning warning_of(const Attempt& attempt) {
  switch (attempt.what) {
    case Undertaking::kNote:
      return Warning::kFailureNotStored;
    case Undertaking::kEndOfLog:
      return attempt.failure.kind == postgres::FailureClass::kResource
                 ? Warning::kInsufficientResources
                 : Warning::kLogEndNotStored;
    case Undertaking::kAcquire:
      return Warning::kAcquireFailed;
    case Undertaking::kHalt:
      return Warning::kHaltNotStored;
    case Undertaking::kMessage:
    case Undertaking::kPipeline:
    case Undertaking::kBatch:
    case Undertaking::kLostConnection:
      break;
  }
  return Warning::kOffsetOutOfOrder;
}

std::string warning_text(const Attempt& attempt) {
  const auto& failure = attempt.failure;
  switch (attempt.what) {
    case Undertaking::kNote:
      return fmt::format("cannot store that a message failed: {}", failure.text);
    case Undertaking::kEndOfLog:
      return fmt::format("cannot store that the log ends at {}: {}", attempt.offset, failure.text);
    case Undertaking::kAcquire:
      return fmt::format("{}. Retrying", failure.text);
    case Undertaking::kHalt:
      return fmt::format("cannot store the halt of the partition: {}. Cause of the halt: {}",
                         failure.text, attempt.about);
    case Undertaking::kMessage:
    case Undertaking::kPipeline:
    case Undertaking::kBatch:
    case Undertaking::kLostConnection:
      break;
  }
  return failure.text;
}

AttemptHalt halt_of(const FailureOptions& options, const Attempt& attempt, Action::What what,
                    std::uint32_t attempts) {
  const auto& failure = attempt.failure;
  AttemptHalt result;
  auto& halt = result.halt;
  const bool of_message = what == Action::What::kHaltAtMessage;
  if (failure.halt && of_message) {
    halt = *failure.halt;
  } else {
    halt = ledger::make_halt(code_of(attempt, what));
    halt.cause = failure.text;
    set(halt, parameter::kStatement, failure.statement);
    set(halt, parameter::kSqlstate, failure.sqlstate);
    if (of_message && failure.reason != ledger::dead_reason::kError)
      set(halt, parameter::kReason, failure.reason);
  }
  halt.handler = handler_of(attempt);
  if (attempt.what == Undertaking::kEndOfLog) {
    set(halt, parameter::kOffset, std::to_string(attempt.offset));
  } else {
    halt.message_offset = attempt.offset;
  }
  if (what == Action::What::kHaltFlood)
    set(halt, parameter::kMessages, std::to_string(options.circuit_breaker));
  if (!of_message) {
    result.retry_after = options.program_error_retry;
    return result;
  }
  set(halt, parameter::kIdempotencyKey, attempt.subject.key);
  set(halt, parameter::kAttempts, std::to_string(attempts));
  // The DETAIL itself is not stored, because it may quote values of rows.
  if (!failure.detail.empty())
    set(halt, parameter::kHasDetail, "true");
  return result;
}

ledger::Halt unknown_outcome_halt(const std::string& key, const std::string& remote_key,
                                  std::chrono::milliseconds unknown_for) {
  auto halt = ledger::make_halt(code::kUnknownOutcome);
  halt.cause = "an earlier call may or may not have succeeded";
  set(halt, parameter::kIdempotencyKey, key);
  set(halt, parameter::kRemoteKey, remote_key);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  set(halt, parameter::kUnknownSince, ledger::to_string(now - unknown_for));
  return halt;
}

ledger::Halt lease_store_changed_halt(const std::string& key) {
  auto halt = ledger::make_halt(code::kLeaseStoreChanged);
  halt.cause = "an unfinished attempt of the idempotency key has its lease in PostgreSQL";
  set(halt, parameter::kIdempotencyKey, key);
  return halt;
}

ledger::Halt lease_unreadable_halt(const std::string& key, const std::string& redis_key) {
  auto halt = ledger::make_halt(code::kLeaseUnreadable);
  halt.cause =
      fmt::format("Redis has a value of another type under {} or {}:holder", redis_key, redis_key);
  set(halt, parameter::kIdempotencyKey, key);
  set(halt, parameter::kRedisKey, redis_key);
  return halt;
}

ledger::Halt leader_epoch_older_halt(const Inbox::Item& next, ledger::Position stored,
                                     std::int32_t stored_epoch) {
  auto halt = ledger::make_halt(code::kLeaderEpochOlder);
  set(halt, parameter::kOffset, std::to_string(next.record.offset()));
  set(halt, parameter::kLeaderEpoch, std::to_string(next.leader_epoch.value_or(-1)));
  set(halt, parameter::kNextOffset, std::to_string(stored.next()));
  set(halt, parameter::kStoredLeaderEpoch, std::to_string(stored_epoch));
  return halt;
}

ledger::Halt completed_record_replaced_halt(const Inbox::Item& next) {
  auto halt = ledger::make_halt(code::kCompletedRecordReplaced);
  set(halt, parameter::kOffset, std::to_string(next.record.offset()));
  return halt;
}

ledger::Halt fetch_crashed_halt(std::int64_t next, std::uint32_t crashes) {
  auto halt = ledger::make_halt(code::kFetchCrashed);
  halt.message_offset = next;
  set(halt, parameter::kCrashes, std::to_string(crashes));
  return halt;
}

ledger::Halt batch_unreadable_halt(const Inbox::Item& next) {
  auto halt = ledger::make_halt(code::kBatchUnreadable);
  halt.cause = texts::bounded(next.record.error_text(), texts::kLongestCause);
  set(halt, parameter::kOffset, std::to_string(next.from.next()));
  return halt;
}

}  // namespace pawl::engine
