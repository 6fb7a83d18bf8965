#pragma once

#include <cstdint>
#include <string>

#include "ledger/register_view.hpp"
#include "ledger/types.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// Changes of single partitions while they run, by a command or on a page. Each waits for a locked
/// row (change_register) and throws FatalError with what to do.

enum class StateChange {
  kDone,
  kWasSo,             ///< it had the state before
  kChangedMeanwhile,  ///< another change came first: nothing was changed
};
/// Pauses or resumes; `row` is what was read of it.
[[nodiscard]] StateChange set_partition_state(postgres::Session& session, const Options& options,
                                              const ledger::KnownConsumer& consumer,
                                              const ledger::RegisterRow& row,
                                              ledger::PartitionState state,
                                              const std::string& reason);
/// What an operator may rely on after kDone or kWasSo, without a period: "orders[0] was paused and
/// is running now. Next offset: 5". No process applies the state of a partition without an owner
/// until it acquires the partition, so the text states that. `row`: what was read of it. Pure.
[[nodiscard]] std::string stored_state_text(const ledger::RegisterRow& row,
                                            ledger::PartitionState state);

/// Skips the message at `offset`, which must be the next one, and stores it. Reads it from Kafka,
/// unless the partition is halted because reading it crashes processes: then only its offset is
/// stored. Throws also BadCall if it is not the next one: nothing was changed. Returns what is
/// stored, for people.
std::string skip_message(postgres::Session& session, const Options& options,
                         const ledger::KnownConsumer& consumer, const ledger::RegisterRow& row,
                         std::int64_t offset, const std::string& reason);

}  // namespace pawl::cli
