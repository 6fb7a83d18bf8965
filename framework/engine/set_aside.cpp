#include "engine/set_aside.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "engine/retries.hpp"

namespace pawl::engine {

std::string handler_of(const Attempt& attempt) {
  const auto* binding = attempt.subject.binding;
  return binding == nullptr ? std::string() : binding->label;
}

const FailureOptions& failure_options(const Options& options, const Attempt& attempt) {
  const auto* binding = attempt.subject.binding;
  return binding == nullptr ? options.failures : binding->failures;
}

void emit_failed(const Attempt& attempt, Action::What what, std::uint32_t attempts,
                 const FailureOptions& options, bool with_detail,
                 const std::function<void(const Event&)>& emit) {
  using What = Action::What;
  const auto& failure = attempt.failure;
  const auto handler = handler_of(attempt);
  const auto text = told(failure, with_detail);
  std::vector<EventField> fields;
  const auto most = attempts_allowed(options);
  if (attempts > 0 && most < std::numeric_limits<std::uint32_t>::max())
    fields.push_back({"max_attempts", std::int64_t{most}});
  if (what == What::kRetry)
    fields.push_back({"retry_in_ms", std::int64_t{failure.retry_after.count()}});
  if (!failure.statement.empty())
    fields.push_back({"statement", std::string_view(failure.statement)});
  Event event{Step::kAttemptFailed};
  event.handler = handler;
  event.key = attempt.subject.key;
  event.detail = text;
  event.reason = class_of(failure);
  event.sqlstate = failure.sqlstate;
  event.attempt = attempts;
  const bool ends = what == What::kSetAside || what == What::kHaltAtMessage ||
                    what == What::kHaltProgram || what == What::kHaltFlood;
  // No other event has the DETAIL, because what is stored must not quote values of rows.
  event.is_final = ends && text == failure.text;
  event.fields = fields;
  emit(event);
}

Policy policy_of(const FailureOptions& options, const Attempt& attempt, Breaker& breaker) {
  Policy policy;
  policy.on_failure = options.on_failure;
  policy.most_attempts = attempts_allowed(options);
  policy.breaker_open =
      !breaker.allows(handler_of(attempt), attempt.failure.way(), options.circuit_breaker);
  return policy;
}

Attempt note_failed(const Attempt& attempt, Failure failure) {
  auto note = attempt;
  note.what = Undertaking::kNote;
  note.failure = std::move(failure);
  note.counted = false;
  return note;
}

ledger::Burial burial_of(const FailureOptions& options, const Attempt& attempt,
                         const Message& message, std::uint32_t attempts,
                         std::optional<std::int32_t> leader_epoch) {
  const auto& failure = attempt.failure;
  ledger::Burial burial;
  burial.reason = failure.reason;
  burial.handler = handler_of(attempt);
  burial.idempotency_key = attempt.subject.key;
  burial.sqlstate = failure.sqlstate;
  burial.statement = failure.statement;
  burial.error = failure.text;
  burial.error_detail = failure.detail;
  burial.attempts = attempts;
  burial.leader_epoch = leader_epoch;
  burial.parks_its_key = handlers::parks(options.on_failure) && message.key().has_value();
  if (options.on_failure == FailurePolicy::kRetryLater && may_pass_later(failure))
    burial.retry_after = options.retry_later.front();
  return burial;
}

}  // namespace pawl::engine
