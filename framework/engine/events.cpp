#include <array>
#include <cstddef>
#include <utility>

#include "pawl/condition.hpp"
#include "pawl/observer.hpp"

namespace pawl {
namespace {

template <class Enum, std::size_t Size>
using Names = std::array<std::pair<Enum, std::string_view>, Size>;

template <class Enum, std::size_t Size>
consteval bool is_in_order(const Names<Enum, Size>& names) {
  for (std::size_t i = 0; i < Size; ++i) {
    if (static_cast<std::size_t>(names[i].first) != i)
      return false;
  }
  return true;
}

template <class Enum, std::size_t Size>
std::string_view name_of(const Names<Enum, Size>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < Size ? names[index].second : "unknown";
}

constexpr auto kSteps = std::to_array<std::pair<Step, std::string_view>>({
    {Step::kAssigned, "assigned"},
    {Step::kAcquired, "acquired"},
    {Step::kPositioned, "positioned"},
    {Step::kFetched, "fetched"},
    {Step::kLeased, "leased"},
    {Step::kCalled, "called"},
    {Step::kClaimed, "claimed"},
    {Step::kDuplicate, "duplicate"},
    {Step::kHandled, "handled"},
    {Step::kAdvancing, "advancing"},
    {Step::kCommitting, "committing"},
    {Step::kCommitted, "committed"},
    {Step::kSkipped, "skipped"},
    {Step::kDeadLettered, "dead_lettered"},
    {Step::kRetryLater, "retry_later"},
    {Step::kRetried, "retried"},
    {Step::kParked, "parked"},
    {Step::kOnProbation, "probation_started"},
    {Step::kOffProbation, "probation_ended"},
    {Step::kProbation, "probation"},
    {Step::kFailed, "failed"},
    {Step::kFenced, "fenced"},
    {Step::kInDoubt, "in_doubt"},
    {Step::kHalted, "halted"},
    {Step::kPaused, "paused"},
    {Step::kRevoked, "revoked"},
    {Step::kReleased, "released"},
    {Step::kCaughtUp, "caught_up"},
    {Step::kLogEnd, "log_end"},
    {Step::kConnected, "connected"},
    {Step::kDisconnected, "disconnected"},
    {Step::kBreakerOpen, "breaker_open"},
    {Step::kDatabaseLost, "database_lost"},
    {Step::kDatabaseBack, "database_back"},
    {Step::kKafkaLost, "kafka_lost"},
    {Step::kKafkaBack, "kafka_back"},
    {Step::kRedisLost, "redis_lost"},
    {Step::kRedisBack, "redis_back"},
    {Step::kRemoteServiceUnreachable, "remote_service_unreachable"},
    {Step::kRemoteServiceReachable, "remote_service_reachable"},
    {Step::kPartitionBlocked, "partition_blocked"},
    {Step::kPartitionUnblocked, "partition_unblocked"},
    {Step::kGroupAwaited, "group_awaited"},
    {Step::kTopicRefused, "topic_refused"},
    {Step::kTopicServed, "topic_served"},
    {Step::kPruned, "pruned"},
    {Step::kHandlersDiffer, "handlers_differ"},
    {Step::kRelayed, "relayed"},
    {Step::kOutboxAcquired, "outbox_acquired"},
    {Step::kOutboxBegun, "outbox_begun"},
    {Step::kOutboxSent, "outbox_sent"},
    {Step::kOutboxCommitted, "outbox_committed"},
    {Step::kOutboxEnded, "outbox_ended"},
    {Step::kOutboxReleased, "outbox_released"},
    {Step::kOutboxRefused, "outbox_refused"},
    {Step::kOutboxLeftOut, "outbox_left_out"},
    {Step::kOutboxLate, "outbox_late"},
    {Step::kOutboxCaughtUp, "outbox_caught_up"},
    {Step::kOutboxSeen, "outbox_seen"},
    {Step::kDrained, "drained"},
    {Step::kWarning, "warning"},
});
static_assert(is_in_order(kSteps) && kSteps.back().first == Step::kWarning);

constexpr auto kWarnings = std::to_array<std::pair<Warning, std::string_view>>({
    {Warning::kDatabaseAwaited, "database_awaited"},
    {Warning::kKafkaAwaited, "kafka_awaited"},
    {Warning::kKafkaClient, "kafka_client"},
    {Warning::kKafkaError, "kafka_error"},
    {Warning::kLeftOut, "left_out"},
    {Warning::kKeyDoubtful, "key_doubtful"},
    {Warning::kAcquireFailed, "acquire_failed"},
    {Warning::kPositionFailed, "position_failed"},
    {Warning::kStreamStuck, "stream_stuck"},
    {Warning::kBufferFull, "buffer_full"},
    {Warning::kOutOfOrder, "out_of_order"},
    {Warning::kNoRoom, "no_room"},
    {Warning::kRegisterUnread, "register_unread"},
    {Warning::kSessionRestored, "session_settings_restored"},
    {Warning::kWrongDatabase, "wrong_database"},
    {Warning::kRegisterWentBack, "register_went_back"},
    {Warning::kNotExamined, "not_examined"},
    {Warning::kFailureNotStored, "failure_not_stored"},
    {Warning::kLogEndNotStored, "log_end_not_stored"},
    {Warning::kHaltNotStored, "halt_not_stored"},
    {Warning::kHandOverNotStored, "hand_over_not_stored"},
    {Warning::kPresenceNotStored, "presence_not_stored"},
    {Warning::kNotDurable, "not_durable"},
    {Warning::kCallbackThrew, "callback_threw"},
    {Warning::kWorkerStuck, "worker_stuck"},
    {Warning::kStalledSession, "stalled_session"},
    {Warning::kShutdownTimeout, "shutdown_timeout"},
    {Warning::kAlertFailed, "alert_failed"},
    {Warning::kDeadLetterTopic, "dead_letter_topic"},
    {Warning::kRetentionFailed, "retention_failed"},
    {Warning::kRetentionUncertain, "retention_uncertain"},
    {Warning::kRetryLater, "retry_later"},
    {Warning::kOutbox, "outbox"},
    {Warning::kLeaseLost, "lease_lost"},
    {Warning::kLeasesNotExtended, "leases_not_extended"},
    {Warning::kKeysHeld, "keys_held"},
    {Warning::kCrashLoop, "crash_loop"},
    {Warning::kSequenceBehind, "sequence_behind"},
});
static_assert(is_in_order(kWarnings) && kWarnings.back().first == Warning::kSequenceBehind);

}  // namespace

std::string_view to_string(Step step) {
  return name_of(kSteps, step);
}

std::string_view to_string(Warning warning) {
  return name_of(kWarnings, warning);
}

std::string_view to_string(Condition::Kind kind) {
  return to_string(kind == Condition::Kind::kPartitionBlocked ? Step::kPartitionBlocked
                                                              : Step::kRemoteServiceUnreachable);
}

bool is_of_message(Step step) {
  switch (step) {
    case Step::kDuplicate:
    case Step::kCommitted:
    case Step::kSkipped:
    case Step::kDeadLettered:
    case Step::kRetryLater:
    case Step::kRetried:
    case Step::kParked:
    case Step::kProbation:
    case Step::kFailed:
    case Step::kInDoubt:
      return true;
    default:
      return false;
  }
}

std::optional<std::int64_t> message_offset(const Event& event) {
  if (is_of_message(event.step) && event.offset >= 0)
    return event.offset;
  return event.message_offset;
}

}  // namespace pawl
