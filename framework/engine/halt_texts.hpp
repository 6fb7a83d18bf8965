#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/inbox.hpp"
#include "engine/verdict.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"
#include "postgres/error.hpp"

namespace pawl::engine {

/// "group topic [3]", as texts for people name a partition.
[[nodiscard]] std::string place_text(const std::string& group, const TopicPartition& partition);

/// What a warning is about that tells of a failed attempt.
[[nodiscard]] Warning warning_of(const Attempt& attempt);
/// Its text, where the attempt was no message's.
[[nodiscard]] std::string warning_text(const Attempt& attempt);

/// "; this names missing rights: pawl check …" where a task's statement failed for the program or
/// the database, not for the connection; empty otherwise.
[[nodiscard]] std::string rights_hint(const InvocationOptions& invocation,
                                      const postgres::Error& error);

// Why a partition halts, and what to do: as they stand in the register, in `status` and in alerts.

struct HaltPlace {
  const Options& options;
  const TopicPartition& partition;
};
/// What halt follows from an attempt.
struct AttemptHalt {
  ledger::Halt halt;
  std::optional<std::chrono::milliseconds> retry_after = {};  ///< it is tried again by itself
  std::string flood = {};    ///< the breaker is open: what is told of that
  std::string handler = {};  ///< whose message it is; empty: none was found, or it is no message
};
/// `what`: kHaltAtMessage, kHaltProgram or kHaltFlood. `attempts`: of the message, so far.
[[nodiscard]] AttemptHalt halt_of(const HaltPlace& place, const FailureOptions& options,
                                  const Attempt& attempt, Action::What what,
                                  std::uint32_t attempts);
/// At a message, until an operator or a new owner tries it once more.
[[nodiscard]] std::string halt_at_message_text(const HaltPlace& place, const Attempt& attempt,
                                               std::uint32_t attempts);
/// Any message would fail as well; it is tried again by itself after `pause`.
[[nodiscard]] std::string halt_program_text(const HaltPlace& place, const Attempt& attempt,
                                            std::chrono::milliseconds pause);
/// So many in a row failed in one way that none is set aside any more.
[[nodiscard]] std::string flood_text(const FailureOptions& options, const Attempt& attempt);
[[nodiscard]] std::string halt_flood_text(const HaltPlace& place, const FailureOptions& options,
                                          const Attempt& attempt, const std::string& handler);
/// The leader epoch of what comes next is below that of what was processed.
[[nodiscard]] std::string halt_older_epoch_text(const HaltPlace& place, const Inbox::Item& next,
                                                ledger::Position stored, std::int32_t stored_epoch);
/// It was finished ahead of the stored offset, and another record stands there now.
[[nodiscard]] std::string halt_replaced_text(const HaltPlace& place, const Inbox::Item& next);
/// So many processes in a row ended while they fetched what comes at `next` or behind it.
[[nodiscard]] std::string halt_crash_loop_text(const HaltPlace& place, std::int64_t next,
                                               std::uint32_t crashes);
/// What comes next cannot be read.
[[nodiscard]] std::string halt_unreadable_text(const HaltPlace& place, const Inbox::Item& next,
                                               ledger::Position stored);

}  // namespace pawl::engine
