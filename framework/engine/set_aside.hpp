#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/breaker.hpp"
#include "engine/verdict.hpp"
#include "pawl/message.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// The handler that the attempt was of; empty: none was found.
[[nodiscard]] std::string handler_of(const Attempt& attempt);

/// The policy of that handler, or the general one.
[[nodiscard]] const FailureOptions& failure_options(const Options& options, const Attempt& attempt);

/// What decide() must know of it.
[[nodiscard]] Policy policy_of(const FailureOptions& options, const Attempt& attempt,
                               Breaker& breaker);

/// Emits kAttemptFailed with what is known of the attempt; `emit` adds its place. `what` follows
/// from it. `attempts`: of the message so far, if this one is counted; otherwise 0. `with_detail`:
/// with PostgreSQL's DETAIL.
void emit_failed(const Attempt& attempt, Action::What what, std::uint32_t attempts,
                 const FailureOptions& options, bool with_detail,
                 const std::function<void(const Event&)>& emit);

/// What follows from an attempt could not be recorded.
[[nodiscard]] Attempt note_failed(const Attempt& attempt, Failure failure);

/// What is stored of a message that is set aside.
[[nodiscard]] ledger::Burial burial_of(const FailureOptions& options, const Attempt& attempt,
                                       const Message& message, std::uint32_t attempts,
                                       std::optional<std::int32_t> leader_epoch);

}  // namespace pawl::engine
