#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::ledger {

/// The class of a halt. It decides whether pawl retries the halted partition automatically.
namespace halt_kind {
/// The next message cannot be applied.
inline constexpr const char* kMessage = "message";
/// An earlier call of the next message may or may not have succeeded.
inline constexpr const char* kUnknownOutcome = "unknown-outcome";
/// Each message would fail: SQL of the handler, or the database, is at fault.
inline constexpr const char* kProgram = "program";
/// Too many consecutive messages of a handler failed the same way.
inline constexpr const char* kCircuitBreaker = "circuit-breaker";
/// The next message crashes processes.
inline constexpr const char* kCrash = "crash";
/// Processes crash while they fetch the next message, before a handler receives it.
inline constexpr const char* kCrashLoop = "crash-loop";
/// The stored offset and Kafka's log do not match, or no initial offset can be chosen.
inline constexpr const char* kPosition = "position";
}  // namespace halt_kind

/// What happened. engine/halt_rendering.hpp has the texts of each code.
namespace halt_code {
inline constexpr const char* kMessageFailed = "message_failed";
inline constexpr const char* kTransactionEnded = "transaction_ended";
inline constexpr const char* kUnknownOutcome = "unknown_outcome";
inline constexpr const char* kLeaseStoreChanged = "lease_store_changed";
inline constexpr const char* kLeaseUnreadable = "lease_unreadable";
inline constexpr const char* kProgramError = "program_error";
inline constexpr const char* kLogEndNotStored = "log_end_not_stored";
inline constexpr const char* kCircuitBreakerOpen = "circuit_breaker_open";
inline constexpr const char* kProcessCrashed = "process_crashed";
inline constexpr const char* kFetchCrashed = "fetch_crashed";
inline constexpr const char* kLogStartMoved = "log_start_moved";
inline constexpr const char* kLogTruncated = "log_truncated";
inline constexpr const char* kRecordReplaced = "record_replaced";
inline constexpr const char* kCompletedRecordReplaced = "completed_record_replaced";
inline constexpr const char* kLeaderEpochOlder = "leader_epoch_older";
inline constexpr const char* kTopicRecreated = "topic_recreated";
inline constexpr const char* kBatchUnreadable = "batch_unreadable";
inline constexpr const char* kOffsetRowMissing = "offset_row_missing";
inline constexpr const char* kOtherDatabase = "other_database";
inline constexpr const char* kConsumerLost = "consumer_lost";
inline constexpr const char* kStartUndecided = "start_undecided";
inline constexpr const char* kTopicOfOtherConsumer = "topic_of_other_consumer";
}  // namespace halt_code

/// Names of the facts in Halt::parameters. In JSON, counts, offsets, and numbers of partitions are
/// numbers, kHasDetail is true, and the others are texts.
namespace halt_parameter {
inline constexpr const char* kIdempotencyKey = "idempotency_key";
inline constexpr const char* kReason = "reason";  ///< ledger::dead_reason, unless it is "error"
inline constexpr const char* kStatement = "statement";  ///< of the handler: "sql[0]"
inline constexpr const char* kSqlstate = "sqlstate";
inline constexpr const char* kAttempts = "attempts";
/// "true": PostgreSQL reported a DETAIL, which is not stored because it may quote values of rows.
inline constexpr const char* kHasDetail = "has_detail";
inline constexpr const char* kRemoteKey = "remote_key";
inline constexpr const char* kRedisKey = "redis_key";
inline constexpr const char* kUnknownSince = "unknown_since";  ///< RFC 3339, UTC
inline constexpr const char* kMessages = "messages";
inline constexpr const char* kCrashes = "crashes";
inline constexpr const char* kOffset = "offset";
inline constexpr const char* kNextOffset = "next_offset";
inline constexpr const char* kLogStart = "log_start";
inline constexpr const char* kLogEnd = "log_end";
inline constexpr const char* kLeaderEpoch = "leader_epoch";
inline constexpr const char* kStoredLeaderEpoch = "stored_leader_epoch";
inline constexpr const char* kOldTopicId = "old_topic_id";
inline constexpr const char* kTopicId = "topic_id";
inline constexpr const char* kUncertainFrom = "uncertain_from";
inline constexpr const char* kUnprocessed = "unprocessed";
inline constexpr const char* kAppliedFrom = "applied_from";
inline constexpr const char* kEarlierHalt = "earlier_halt";
inline constexpr const char* kEarlierCause = "earlier_cause";
inline constexpr const char* kPartitions = "partitions";
inline constexpr const char* kCommittedPartition = "committed_partition";
inline constexpr const char* kCommittedOffset = "committed_offset";
inline constexpr const char* kOtherDatabaseId = "other_database_id";
inline constexpr const char* kDatabaseId = "database_id";
inline constexpr const char* kConsumers = "consumers";
inline constexpr const char* kConsumerNames = "consumer_names";
}  // namespace halt_parameter

/// Why a partition is halted, as facts of one moment: without advice, commands, and relative times.
struct Halt {
  std::string kind;  ///< halt_kind
  std::string code;  ///< halt_code
  /// Of the message that halts the partition. Nullopt: the halt is not about one message.
  std::optional<std::int64_t> message_offset = {};
  std::string handler = {};  ///< of that message; empty: unknown, or none
  std::string cause = {};    ///< the error, bounded; empty: the parameters say everything
  std::map<std::string, std::string> parameters = {};

  /// Empty: the halt does not have it.
  [[nodiscard]] std::string parameter(const std::string& name) const;
  /// Nullopt: the halt does not have it, or it is a text.
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& name) const;

  friend bool operator==(const Halt&, const Halt&) = default;
};

/// A halt with this code and the kind that the code belongs to.
[[nodiscard]] Halt make_halt(std::string_view code);

/// The parameters as a JSON object, and back. "" is no parameters.
[[nodiscard]] std::string parameters_json(const Halt& halt);
[[nodiscard]] std::map<std::string, std::string> parse_parameters_json(const std::string& text);

}  // namespace pawl::ledger
