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

/// A partition of a group, as these texts name it.
struct PositionPlace {
  const std::string& group;
  const TopicPartition& partition;
  const InvocationOptions& invocation;
};

/// "pawl offsets set ...", which states another position.
[[nodiscard]] std::string set_command(const InvocationOptions& invocation,
                                      const TopicPartition& partition,
                                      std::string_view to = "OFFSET");

/// The topic was deleted and created again since. Ids are empty where nothing knows them: that is
/// no reason. `looked_at`: the next offset when Kafka last named the topic of the position; what
/// this process applied from there on may be the new topic's. nullopt: it did not look.
[[nodiscard]] std::optional<std::string> other_topic(const PositionPlace& place,
                                                     const ledger::Acquired& acquired,
                                                     const std::string& current_id,
                                                     std::optional<std::int64_t> looked_at);

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
