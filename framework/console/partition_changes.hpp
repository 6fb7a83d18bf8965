#pragma once

#include <cstdint>
#include <string>

#include "ledger/register_view.hpp"
#include "ledger/types.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::cli {

/// What operators do to single partitions while they run, by a command or on a page. Each waits for
/// a locked row (change_register) and throws FatalError with what to do.

enum class StateChange {
  kDone,
  kWasSo,             ///< nothing was to be changed
  kChangedMeanwhile,  ///< it is not as it was read any more: nothing was changed
};
/// Pauses or resumes; `row` is what was read of it.
[[nodiscard]] StateChange set_partition_state(postgres::Session& session, const Options& options,
                                              const ledger::KnownConsumer& consumer,
                                              const ledger::RegisterRow& row,
                                              ledger::PartitionState state,
                                              const std::string& reason);

/// Leaves out the message at `offset`, which must be the one that comes next, and keeps it. Asks
/// Kafka for it, unless the partition is halted because reading it ends processes: then only its
/// offset is kept. Throws also BadCall where it is another one: nothing was changed. `place` begins
/// its text: "--offset 7: ", or nothing. Returns what is kept, for people.
std::string skip_message(postgres::Session& session, const Options& options,
                         const ledger::KnownConsumer& consumer, const ledger::RegisterRow& row,
                         std::int64_t offset, const std::string& reason, const std::string& place);

}  // namespace pawl::cli
