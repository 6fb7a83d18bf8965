#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/options.hpp"

namespace pawl::ops {

/// The kinds of alerts, as receivers see them.
namespace alert_kind {
inline constexpr std::string_view kHalt = "halt";
inline constexpr std::string_view kDeadLetter = "dead-letter";
inline constexpr std::string_view kCircuitBreaker = "circuit-breaker";
inline constexpr std::string_view kProbation = "probation";
inline constexpr std::string_view kHandlersDiffer = "handlers-differ";
inline constexpr std::string_view kLeaseLost = "lease-lost";
inline constexpr std::string_view kTopicAccessDenied = "topic-access-denied";
inline constexpr std::string_view kOutboxRejected = "outbox-rejected";
inline constexpr std::string_view kOutboxLate = "outbox-late";
inline constexpr std::string_view kOutboxCaughtUp = "outbox-caught-up";
inline constexpr std::string_view kDatabaseUnreachable = "database-unreachable";
inline constexpr std::string_view kDatabaseReachable = "database-reachable";
inline constexpr std::string_view kKafkaUnreachable = "kafka-unreachable";
inline constexpr std::string_view kKafkaReachable = "kafka-reachable";
inline constexpr std::string_view kRedisUnreachable = "redis-unreachable";
inline constexpr std::string_view kRedisReachable = "redis-reachable";
inline constexpr std::string_view kRemoteServiceUnreachable = "remote-service-unreachable";
inline constexpr std::string_view kRemoteServiceReachable = "remote-service-reachable";
inline constexpr std::string_view kPartitionBlocked = "partition-blocked";
inline constexpr std::string_view kPartitionUnblocked = "partition-unblocked";
}  // namespace alert_kind

/// One kind, as docs/reference/events.md lists it.
struct AlertRow {
  std::string_view kind;
  std::string_view meaning;
};

/// All kinds.
[[nodiscard]] std::span<const AlertRow> alert_table();

/// One alert. Fields that are empty or negative are omitted.
struct Alert {
  std::string_view kind;  ///< alert_kind
  std::string topic = {};
  std::int32_t partition = -1;
  std::optional<std::int64_t> message_offset = {};  ///< of the message that it is about
  std::string handler = {};
  std::string endpoint = {};   ///< of a remote service
  std::string reason = {};     ///< class of a failure
  std::string sqlstate = {};   ///< of a failure
  std::string statement = {};  ///< of the handler, if one failed
  std::int64_t dead_letter_id = -1;
  std::string msg = {};          ///< as the log has it: no payloads
  std::int64_t happened_ms = 0;  ///< since 1970
  std::int64_t seconds = -1;     ///< of an outage: how long it has lasted
  std::uint64_t suppressed = 0;  ///< more of this kind that were not sent since the last one
};

/// Who sends: the same in every alert of a process.
struct AlertSender {
  std::string cluster;
  std::string group;     ///< empty: it only relays the outbox
  std::string instance;  ///< host and process id
};
[[nodiscard]] AlertSender alert_sender(const Options& options);

/// One object in one line. `msg` is shortened if it would be longer than `most` bytes.
[[nodiscard]] std::string alert_json(const AlertSender& sender, const Alert& alert,
                                     std::size_t most);

/// An alert as environment variables of a command: PAWL_ALERT_KIND and so on.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> alert_environment(
    const AlertSender& sender, const Alert& alert);

}  // namespace pawl::ops
