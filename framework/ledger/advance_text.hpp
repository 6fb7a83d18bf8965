#pragma once

#include <string>
#include <string_view>

#include "ledger/types.hpp"

namespace pawl::ledger {

/// What one kind of advance sets. Each is a statement of its own: what a message does not need
/// would cost the server time with every message.
struct AdvanceKind {
  Outcome outcome = Outcome::kApplied;
  bool claimed = true;  ///< within the transaction that claimed the key, which $7 names
  bool halted = false;  ///< the row says that the partition is halted: it goes on
  /// It releases all advisory locks of the session, and takes the one of $10 and $11 again
  /// (Session::add_own_lock()).
  bool releases = false;
};

/// The compare-and-set of the offset register, which RAISES PW001 to PW003 unless it moves the row
/// (docs/architecture/offset-store.md). Parameters: $1 consumer, $2 topic, $3 partition,
/// $4 epoch, $5 previous offset, $6 new offset, $7 transaction id (NULL when not claimed), $8
/// the leader epoch of the record at the new offset or NULL, $9 timestamp in ms or NULL.
[[nodiscard]] std::string advance_text(const std::string& schema, const AdvanceKind& kind);

/// The advance of a batch, from the first message's predecessor to the last message. It raises the
/// counters by $10 applied (unchecked ones among them), $11 duplicates and $12 unchecked. The row
/// is not halted: what comes behind a halt runs alone.
[[nodiscard]] std::string advance_batch_text(const std::string& schema);

/// What ends a halt that the row `r` of the register says, for the SET of an UPDATE; a comma
/// behind.
[[nodiscard]] std::string_view end_halt_text();

}  // namespace pawl::ledger
