#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/status.hpp"
#include "console/json.hpp"
#include "console/terminal.hpp"
#include "ledger/recent_events.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

/// A look at a consumer, and what its database has kept since the one before.
struct TailLook {
  Status status;
  std::vector<ledger::RecentEvent> events;
};

/// One line of `tail`.
struct TailLine {
  std::string time;   ///< RFC 3339, UTC
  std::string event;  ///< "advanced", "dead_letter", "halted", ...
  std::optional<TopicPartition> partition;
  std::string text;                                                  ///< without time and subject
  Json details = Json::object();                                     ///< beside those three
  std::optional<std::pair<std::int64_t, std::int64_t>> passed = {};  ///< the first and last offset
  std::string subject = {};  ///< "payments[0]@1336-1337", "PostgreSQL"
  std::optional<Symbol> mark = {};
};

/// The events between two samples, by time: messages that were processed or not applied, owners,
/// halts, changes by operators, servers that are unreachable.
[[nodiscard]] std::vector<TailLine> difference(const TailLook& before, const TailLook& next);

/// What the look after `next` is compared with: of a database that does not answer nothing is
/// known, and what was known before it was away counts.
[[nodiscard]] TailLook remembered(TailLook before, TailLook next);

/// Only what is about this topic, and this partition of it; empty, nullopt: about all.
void keep_only(TailLook& look, const std::string& topic, std::optional<std::int32_t> partition);

/// On a terminal the time of day, otherwise the whole time.
[[nodiscard]] std::string line_text(const TailLine& line, const Terminal& terminal = {});
[[nodiscard]] std::string line_json(const TailLine& line);

}  // namespace pawl::cli
