#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dead_letters/store/dead_letters.hpp"
#include "engine/breaker.hpp"
#include "engine/verdict.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// The handler that the attempt was of; empty: none was found.
[[nodiscard]] std::string handler_of(const Attempt& attempt);

/// The policy of that handler, or the general one.
[[nodiscard]] const FailureOptions& failure_options(const Options& options, const Attempt& attempt);

/// What decide() must know of it.
[[nodiscard]] Policy policy_of(const FailureOptions& options, const Attempt& attempt,
                               Breaker& breaker);

/// " (attempt 3 of 7)", " (attempt 7, the last one)"; empty: it does not end, or repeat, a message.
[[nodiscard]] std::string attempt_text(Action::What what, std::uint32_t attempts,
                                       const FailureOptions& options);

/// What follows from an attempt could not be recorded.
[[nodiscard]] Attempt note_failed(const Attempt& attempt, Failure failure);

/// What is stored of a message that is set aside.
[[nodiscard]] ledger::Burial burial_of(const FailureOptions& options, const Attempt& attempt,
                                       const Message& message, std::uint32_t attempts,
                                       std::optional<std::int32_t> leader_epoch);

}  // namespace pawl::engine
