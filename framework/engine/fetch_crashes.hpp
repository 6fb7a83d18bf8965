#pragma once

#include <cstdint>

#include "ledger/types.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// How many processes in a row have ended while they fetched what comes next in a partition that is
/// acquired now. `log_goes_on`: there is a record behind the stored offset. `ours`: this process
/// had it before. What ends a process in a handler is not counted here (engine/probation.hpp): the
/// message has arrived by then.
[[nodiscard]] std::uint32_t fetch_crashes(const ledger::Acquired& acquired, bool log_goes_on,
                                          bool ours);

/// The same before the owner that ended.
[[nodiscard]] std::uint32_t fetch_crashes_before(const ledger::Acquired& acquired);

/// After so many of them the partition halts. The first one may be counted for partitions that were
/// fetched at the same time, so it alone halts none.
[[nodiscard]] std::uint32_t most_fetch_crashes(const FailureOptions& options);

}  // namespace pawl::engine
