#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "console/json.hpp"
#include "ledger/register_view.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

// How `status`, `offsets show` and `tail` say where a partition stands: what is unknown is "?" and
// null, what is not there "-" and null.

/// Messages behind the stored offset; a log that was cut below it has none. Nullopt: one of them is
/// unknown.
[[nodiscard]] std::optional<std::int64_t> lag_of(const ledger::RegisterRow* row,
                                                 std::optional<std::int64_t> end);

/// "orders [3]"
[[nodiscard]] std::string name_of(const TopicPartition& partition);
[[nodiscard]] std::string stored_text(const ledger::RegisterRow& row);
[[nodiscard]] std::string known_text(std::optional<std::int64_t> number);
/// "retrying" and "probation" are running, too.
[[nodiscard]] std::string state_text(const ledger::RegisterRow& row);
[[nodiscard]] std::string owner_text(const ledger::RegisterRow& row);

/// Adds what both commands say of a row: stored, state, since, halt_kind, reason, message_offset,
/// failed_attempts, probation, owner, last_owner, owned_since, epoch, updated.
void describe(Json& json, const ledger::RegisterRow& row);

}  // namespace pawl::cli
