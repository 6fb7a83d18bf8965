#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kafka/client.hpp"
#include "ledger/types.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::engine {

// Whether the position that the register stores may be gone on from, given what Kafka says. Each
// check returns why not, and what to do, or nullopt; all are pure.

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

/// A partition of a group, as these texts name it.
struct PositionPlace {
  const std::string& group;
  const TopicPartition& partition;
  const InvocationOptions& invocation;
  std::string earlier_halt = {};  ///< see earlier_halt(), which this halt replaces
};

/// "pawl offsets set ...", which states another position.
[[nodiscard]] std::string set_command(const InvocationOptions& invocation,
                                      const TopicPartition& partition,
                                      std::string_view to = "OFFSET");

/// Why the partition had halted when it was acquired: a sentence behind a space, without the
/// advice, which holds no longer. Empty: it had not halted.
[[nodiscard]] std::string earlier_halt(const ledger::Acquired& acquired);

/// "stored offset is 4", or that none is.
[[nodiscard]] std::string stored_words(ledger::Position stored);

/// The topic was deleted and created again since. Ids are empty where nothing knows them: that is
/// no reason. Names what of the deleted topic was never processed, and what of the new one was
/// applied.
[[nodiscard]] std::optional<std::string> other_topic(const PositionPlace& place,
                                                     const ledger::Acquired& acquired,
                                                     const std::string& current_id,
                                                     const LastLook& last_look);

/// The log begins behind the position, or ends before it. `log.end` is the high watermark: beyond
/// the stable end of open transactions is not beyond the log.
[[nodiscard]] std::optional<std::string> outside_log(const PositionPlace& place,
                                                     ledger::Position stored,
                                                     const kafka::LogRange& log);

/// The log holds another record at the position than the one that was processed. One refusal may be
/// left over from an older position: it is believed when it came twice for this one.
[[nodiscard]] std::optional<std::string> other_log(const PositionPlace& place,
                                                   const ledger::Acquired& acquired,
                                                   const std::optional<PositionRefusal>& refusal);

}  // namespace pawl::engine
