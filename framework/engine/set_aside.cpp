#include "engine/set_aside.hpp"

#include <fmt/format.h>

#include <utility>

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

std::string attempt_text(Action::What what, std::uint32_t attempts, const FailureOptions& options) {
  if (what == Action::What::kRetry)
    return fmt::format(" (attempt {} of {})", attempts, attempts_allowed(options));
  if (what == Action::What::kSetAside || what == Action::What::kHaltAtMessage)
    return fmt::format(" (attempt {}, the last one)", attempts);
  return {};
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
