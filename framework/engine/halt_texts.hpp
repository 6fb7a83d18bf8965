#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/inbox.hpp"
#include "engine/verdict.hpp"
#include "ledger/halt.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"
#include "postgres/error.hpp"

namespace pawl::engine {

/// What a warning is about that tells of a failed attempt.
[[nodiscard]] Warning warning_of(const Attempt& attempt);
/// Its text, where the attempt was no message's.
[[nodiscard]] std::string warning_text(const Attempt& attempt);

/// "; this names missing rights: pawl check …" where a task's statement failed for the program or
/// the database, not for the connection; empty otherwise.
[[nodiscard]] std::string rights_hint(const InvocationOptions& invocation,
                                      const postgres::Error& error);

// Halts as they are stored: facts only. halt_rendering.hpp makes texts of them.

/// The halt that follows from an attempt.
struct AttemptHalt {
  ledger::Halt halt;
  std::optional<std::chrono::milliseconds> retry_after = {};  ///< it is retried automatically
};
/// `what`: kHaltAtMessage, kHaltProgram or kHaltFlood. `attempts`: of the message, so far.
[[nodiscard]] AttemptHalt halt_of(const FailureOptions& options, const Attempt& attempt,
                                  Action::What what, std::uint32_t attempts);

/// The outcome of an earlier call has been unknown for `unknown_for`.
[[nodiscard]] ledger::Halt unknown_outcome_halt(const std::string& key,
                                                const std::string& remote_key,
                                                std::chrono::milliseconds unknown_for);
/// An unfinished attempt of the key has its lease in PostgreSQL, and leases are in Redis now.
[[nodiscard]] ledger::Halt lease_store_changed_halt(const std::string& key);
/// Redis has another value under the name of the key's lease.
[[nodiscard]] ledger::Halt lease_unreadable_halt(const std::string& key,
                                                 const std::string& redis_key);

/// The leader epoch of the next message is older than that of the last processed one.
[[nodiscard]] ledger::Halt leader_epoch_older_halt(const Inbox::Item& next, ledger::Position stored,
                                                   std::int32_t stored_epoch);
/// The message was completed out of order, and Kafka has another record at its offset now.
[[nodiscard]] ledger::Halt completed_record_replaced_halt(const Inbox::Item& next);
/// That many consecutive processes crashed while they fetched the message at `next`.
[[nodiscard]] ledger::Halt fetch_crashed_halt(std::int64_t next, std::uint32_t crashes);
/// The next message cannot be read.
[[nodiscard]] ledger::Halt batch_unreadable_halt(const Inbox::Item& next);

}  // namespace pawl::engine
