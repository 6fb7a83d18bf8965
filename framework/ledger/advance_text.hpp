#pragma once

#include <string>

namespace pawl::ledger {

/// The compare-and-set of the offset register, which RAISES PW001 to PW004 unless it moves exactly
/// one row (docs/design.md, "The offset register"). Parameters: $1 consumer, $2 topic, $3
/// partition, $4 epoch, $5 previous offset, $6 new offset, $7 id of the transaction that claimed
/// the key or NULL, $8 outcome, $9 leader epoch or NULL, $10 timestamp in ms or NULL.
[[nodiscard]] std::string advance_text(const std::string& schema);

}  // namespace pawl::ledger
