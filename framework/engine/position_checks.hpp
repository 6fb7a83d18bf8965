#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kafka/client.hpp"
#include "ledger/types.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

// Whether a partition may continue from its stored offset, given what Kafka reports. Each check
// returns the halt that follows, or nullopt. All are pure.

/// What Kafka said against reading from a position, without a record in between.
struct PositionRefusal {
  std::int64_t next = 0;  ///< the offset that was to be read
  int times = 0;          ///< in a row
  std::string text;       ///< of the last time
};

/// What the process knew when Kafka last named the topic of the position.
struct LastLook {
  /// The next offset then: what it applied from there on may be another topic's. nullopt: it did
  /// not look.
  std::optional<std::int64_t> next;
  std::optional<std::int64_t> log_end;  ///< as Kafka told last by then; nullopt: it did not
  std::string topic_id = {};            ///< of that topic
};

/// The halt in which the partition was acquired, which `halt` replaces, becomes part of it.
[[nodiscard]] ledger::Halt after_earlier_halt(ledger::Halt halt, const ledger::Acquired& acquired);

/// The topic was deleted and created again since. Empty IDs are unknown: they are no reason. The
/// parameters have what is known of the deleted topic's messages that were not processed, and of
/// the new topic's messages that were.
[[nodiscard]] std::optional<ledger::Halt> other_topic(const ledger::Acquired& acquired,
                                                      const std::string& current_id,
                                                      const LastLook& last_look);

/// The log starts after the position, or ends before it. `log.end` is the high watermark: after the
/// stable end of open transactions is not after the log.
[[nodiscard]] std::optional<ledger::Halt> outside_log(ledger::Position stored,
                                                      const kafka::LogRange& log);

/// The log has another record at the position than the one that was processed. One refusal may be
/// left over from an older position: two for this one are believed.
[[nodiscard]] std::optional<ledger::Halt> other_log(const ledger::Acquired& acquired,
                                                    const std::optional<PositionRefusal>& refusal);

}  // namespace pawl::engine
