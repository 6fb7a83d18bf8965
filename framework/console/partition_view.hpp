#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "console/json.hpp"
#include "ledger/register_view.hpp"
#include "message/partition_name.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

// How `status`, `offsets show`, `tail`, and the dashboard show the state of a partition. An unknown
// value is "?" and null, an absent one "-" and null. Offsets are next offsets, as in Kafka.

/// Messages from the next offset to the end. Nullopt: one of the two is unknown, or the log ends
/// before the next offset, so that it is another log, or was truncated.
[[nodiscard]] std::optional<std::int64_t> lag_of(const ledger::RegisterRow* row,
                                                 std::optional<std::int64_t> end);

/// What is the matter with a partition, the most urgent last.
enum class Concern {
  kNone,
  kStalled,    ///< messages have waited for kStalledAfter, and none was processed meanwhile
  kProbation,  ///< a process ended with the next message in hand: it runs alone
  kRetrying,   ///< attempts of the next message fail, or of one that runs beside others
  kBlocked,    ///< a message waits for a lock of another session of PostgreSQL
  kPaused,
  kUnowned,  ///< no process works on it
  kHalted,
};
[[nodiscard]] const char* to_string(Concern concern);

inline constexpr std::chrono::seconds kStalledAfter{60};
/// None was processed for kStalledAfter, by who should: whether messages wait is a question to
/// Kafka. One that is halted, paused, retrying, on probation or without owner is not stalled.
[[nodiscard]] bool may_be_stalled(const ledger::RegisterRow& row);
/// `end_before`: where the log ended kStalledAfter ago; nullopt: not known, which is not stalled.
[[nodiscard]] bool stalled(const ledger::RegisterRow& row, std::optional<std::int64_t> end_before);
/// Of several matters the most urgent. No row: nobody has ever worked on it. `blocked`: its process
/// reports that a message waits for a lock.
[[nodiscard]] Concern concern_of(const ledger::RegisterRow* row,
                                 std::optional<std::int64_t> end_before, bool blocked = false);

/// How many partitions each is the matter with. Of several matters with one partition each counts,
/// but a partition is stalled only where nothing else is the matter with it.
struct ConcernCounts {
  std::size_t halted = 0;
  std::size_t paused = 0;
  std::size_t unowned = 0;
  std::size_t stalled = 0;
  std::size_t retrying = 0;
  std::size_t on_probation = 0;
  std::size_t blocked = 0;

  void add(const ledger::RegisterRow* row, std::optional<std::int64_t> end_before,
           bool blocked_by_lock = false);
};

using message::name_of;
/// "orders[0-2,5], payments[7]"
[[nodiscard]] std::string names_of(const std::vector<TopicPartition>& partitions);
/// The offset of the next message, as CURRENT-OFFSET of kafka-consumer-groups.sh.
[[nodiscard]] std::string offset_text(const ledger::RegisterRow& row);
[[nodiscard]] std::string known_text(std::optional<std::int64_t> number);
/// "retrying", "probation" and "unowned" are running in the register, too.
[[nodiscard]] std::string state_text(const ledger::RegisterRow& row);
/// "-": no process owns it.
[[nodiscard]] std::string owner_text(const ledger::RegisterRow& row);
/// "host:1021" of "host:1021:397e8ab5": enough to find the process.
[[nodiscard]] std::string short_owner(const std::string& owner);

/// Adds halt_kind, halt_code, halt_handler, halt_cause, and halt_parameters; null without a halt.
void describe(Json& json, const ledger::Halt& halt);
/// Adds what both commands print of a row: offset (the next one), state, since, operator_reason,
/// those of its halt, message_offset, failed_attempts, probation, owner, last_owner, owned_since,
/// epoch, updated_at.
void describe(Json& json, const ledger::RegisterRow& row);

}  // namespace pawl::cli
