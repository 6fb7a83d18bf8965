#pragma once

// Counts warnings. Pass an instance to the constructor of Consumer.
//
//   #include <atomic>
//   #include <pawl/observer.hpp>
//
//   class WarningCounter final : public pawl::Observer {
//    public:
//     void on_event(const pawl::Event& event) noexcept override {
//       if (event.step == pawl::Step::kWarning)
//         ++warnings;
//     }
//     std::atomic<int> warnings = 0;
//   };

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace pawl {

/// What happens to a message, a partition, the outbox, or a server. docs/reference/events.md lists
/// the code of each step, its level in the log, and what it means.
enum class Step {
  kAssignmentReceived,       ///< Kafka assigned the partition to this process
  kPartitionAssigned,        ///< this process acquired it in PostgreSQL; offset = stored offset
  kHaltedPartitionRetried,   ///< the same of a halted partition, which is retried
  kPartitionResumed,         ///< the cause of its halt is gone
  kFetchPositioned,          ///< Kafka delivers from the next offset on
  kMessageFetched,           ///< the message is taken from the queue
  kLeaseAcquired,            ///< the lease of its key is held
  kCallFinished,             ///< the external call has finished, or none was made
  kKeyClaimed,               ///< BEGIN and the insert of the key are done
  kMessageDeduplicated,      ///< the key exists already, so nothing is applied
  kHandlerReturned,          ///< the handler returned
  kOffsetAdvancing,          ///< the update of the offset is sent, COMMIT is not
  kCommitSent,               ///< COMMIT is sent, the response is pending
  kMessageCommitted,         ///< COMMIT succeeded
  kMessageSkipped,           ///< stored as skipped
  kMessageDeadLettered,      ///< stored as a dead letter; detail has the cause
  kRetryScheduled,           ///< stored, and retried automatically at a due time; detail: the cause
  kRetrySucceeded,           ///< such a message was applied, now or earlier; detail: which
  kMessageParked,            ///< stored after a dead letter of its record key
  kProbationStarted,         ///< a process crashed: its messages in flight are processed alone
  kProbationEnded,           ///< all of these messages are processed
  kProbationAttemptCrashed,  ///< processes crashed while they processed this message alone
  kAttemptFailed,            ///< one attempt failed; detail has the cause
  kPartitionFenced,          ///< another process or an operator took over the partition
  kCommitOutcomeUnknown,     ///< the connection broke during COMMIT
  kPartitionHalted,          ///< the partition stopped; detail: the cause, offset = stored offset
  kPartitionPaused,          ///< an operator paused the partition
  kPartitionRevoked,         ///< Kafka revoked the partition
  kPartitionReleased,        ///< PostgreSQL has stored that this process released it
  kPartitionCaughtUp,        ///< the end of the log is reached; offset = that end
  kLogEndChanged,            ///< Kafka reports another end of the log; offset = that end
  kDatabaseConnected,        ///< a worker connected to PostgreSQL (topic empty)
  kDatabaseDisconnected,     ///< a worker lost its connection; detail has the cause
  kCircuitBreakerOpened,     ///< too many consecutive messages of a handler failed the same way
  /// No worker can use PostgreSQL; detail has the cause (topic empty). Each other cause during the
  /// outage is another event.
  kDatabaseUnreachable,
  kDatabaseReachable,  ///< after that, a worker can
  kKafkaUnreachable,   ///< Kafka did not respond; as kDatabaseUnreachable
  kKafkaReachable,     ///< after that, it responded
  kRedisUnreachable,   ///< no lease can be acquired from Redis; detail has the cause (topic empty)
  kRedisReachable,     ///< after that, one was acquired
  /// An endpoint of http handlers is unreachable: its messages wait, and no attempt is counted.
  /// Event::endpoint names it, detail has the cause (topic empty)
  kRemoteServiceUnreachable,
  kRemoteServiceReachable,  ///< after that, it responded
  /// A message of the partition has waited for a lock for ten times postgres.lock_timeout; detail
  /// names the session that holds it; once for all partitions that wait for this session
  kPartitionBlocked,
  kPartitionUnblocked,   ///< after that, no message of the partition waits for a lock
  kAssignmentPending,    ///< Kafka has assigned nothing for seconds; detail names what may delay it
  kTopicAccessDenied,    ///< Kafka denies access to a topic; detail has the cause, partition -1
  kTopicAccessRestored,  ///< after that, Kafka serves the topic
  kRetentionPruned,      ///< retention removed rows; detail names them (topic empty)
  kHandlersDiffer,       ///< another live process handles the topic in another way
  kDeadLettersPublished,  ///< Kafka confirmed dead letters in dead_letters.topic
  // Of the outbox; partition = shard, offset = number of the batch, topic empty:
  kOutboxShardAcquired,   ///< this process publishes the shard
  kOutboxBatchStarted,    ///< PostgreSQL has stored which messages are published next
  kOutboxBatchSent,       ///< the Kafka client has them, in an open transaction
  kOutboxBatchCommitted,  ///< Kafka has committed them
  kOutboxBatchFinished,   ///< they are removed from the outbox
  kOutboxShardReleased,   ///< this process no longer publishes the shard; detail has the cause
  // Of the outbox as well, partition -1:
  kOutboxMessageRejected,       ///< Kafka rejected a message; topic, detail has the cause
  kOutboxPartitionsUnwritable,  ///< Event::messages: topic partitions that cannot be written to
  kOutboxPartitionsWritable,    ///< after that, all of them can
  kOutboxLate,                  ///< the oldest message waits for longer than outbox.alert_age
  kOutboxCaughtUp,              ///< after that, none does
  kOutboxSampled,               ///< Event::waits; every few seconds, by one process of a database
  kDrainFinished,  ///< --drain stops; detail names the partitions that are not at their end
  kWarning,        ///< Event::warning is its code, detail has the text
};

/// Its code: "partition_halted".
[[nodiscard]] std::string_view to_string(Step step);

/// The subject of a kWarning. Its code is stable, its text is not.
enum class Warning {
  kKafkaClientWarning,       ///< a line of librdkafka's own log
  kKafkaErrorReported,       ///< Kafka reports an error of the group or of a partition's log
  kUnassignedPartition,      ///< no process was assigned some partitions; pawl rejoins the group
  kKeyMayNotBeUnique,        ///< an idempotency key looks like the ID of an entity
  kAcquireFailed,            ///< a partition cannot be acquired in PostgreSQL yet
  kPositionFailed,           ///< Kafka does not accept or report a partition's position yet
  kFetchStalled,             ///< Kafka has records of a partition and delivers none
  kBufferFull,               ///< kafka.buffer is full, so a partition is not fetched
  kOffsetOutOfOrder,         ///< PostgreSQL rejected an offset; pawl reads the stored one again
  kInsufficientResources,    ///< the server lacks disk, memory, or connections
  kOffsetsUnreadable,        ///< changes by operators cannot be read now
  kSessionRestored,          ///< a handler changed its session; pawl restored it
  kPoolerNotConfigured,      ///< pawl connects through a pooler; postgres.pooled is not set
  kWrongDatabase,            ///< postgres.url leads to another database; nothing is processed
  kOffsetsWentBack,          ///< the database lost commits; pawl processes their messages again
  kCauseUndetermined,        ///< whether the message or the program failed is unknown for now
  kFailureNotStored,         ///< a failed attempt or a dead letter cannot be stored yet
  kLogEndNotStored,          ///< the end of a log cannot be stored yet
  kHaltNotStored,            ///< a halt cannot be stored yet
  kReleaseNotStored,         ///< that this process released a partition cannot be stored
  kProcessNotRegistered,     ///< processes of the group cannot be compared with this one
  kCommitsNotDurable,        ///< durability = "replayable": commits cannot be flushed now
  kCallbackFailed,           ///< a callback for duplicates threw
  kWorkerStuck,              ///< a statement or a handler takes longer than its timeout
  kStalledSession,           ///< a session of an earlier owner held locks
  kShutdownTimedOut,         ///< consumer.shutdown_timeout has passed
  kAlertFailed,              ///< an alert could not be sent
  kDeadLetterPublishFailed,  ///< dead letters wait for dead_letters.topic
  kRetentionFailed,          ///< retention removes nothing for now
  kRetentionLimited,         ///< retention lacks a fact, and keeps more rows than required
  kDelayedRetryUnavailable,  ///< scheduled retries cannot run now
  kOutboxDelayed,            ///< messages wait in the outbox; detail has the cause
  kOutboxPublishTimedOut,    ///< Kafka did not confirm messages of the outbox in time
  kLeaseLost,                ///< a call's lease was lost before its outcome was recorded
  kLeasesNotExtended,        ///< leases cannot be extended now; their calls are canceled
  kRetentionBlocked,         ///< a partition keeps keys for longer than twice their retention
  kCrashLoop,                ///< processes crashed while they fetched a partition's next message
  kSequenceBehind,           ///< a sequence is out of sync with its table; the text has the fix
};

/// Its code: "fetch_stalled".
[[nodiscard]] std::string_view to_string(Warning warning);

/// Which messages share a round trip or a transaction.
enum class Grouping {
  kSingle,    ///< each message has its own round trips and its own transaction
  kPipeline,  ///< one round trip, each message in a transaction of its own
  kBatch,     ///< one transaction
};

/// How long a message took. Nullopt: not measured.
struct Timing {
  using Duration = std::chrono::steady_clock::duration;

  /// From when a worker took it from Kafka's queue until the response to COMMIT.
  std::optional<Duration> since_fetched = std::nullopt;
  /// In its handler, or its external call; of a batch at its last message. Statements that are sent
  /// with the COMMIT are in `commit` instead.
  std::optional<Duration> handler = std::nullopt;
  /// The round trip with the COMMIT; of a group at its last message.
  std::optional<Duration> commit = std::nullopt;
  Grouping grouping = Grouping::kSingle;
  /// Messages of the group, at the last of them; otherwise 0.
  std::size_t messages = 0;
};

/// A further field of an event, as in the log: `max_attempts=7`.
struct EventField {
  std::string_view name;
  std::variant<std::int64_t, std::string_view> value;
};

/// One event. The views are valid only during the call.
struct Event {
  Step step{};
  std::string_view topic = {};
  std::int32_t partition = -1;
  /// Of the message, at the steps of a message (is_of_message); otherwise a position: see Step.
  std::int64_t offset = -1;
  std::string_view key = {};     ///< idempotency key, if known; the log has it at level debug only
  std::string_view detail = {};  ///< the cause, without the values of the fields
  std::int64_t lag = -1;         ///< messages to the end of the log, if known
  /// If `offset` is a position: the message that this is about, for example the one that halts a
  /// partition. Nullopt: none; see message_offset().
  std::optional<std::int64_t> message_offset = std::nullopt;
  std::string_view handler = {};                  ///< its name, if known
  std::optional<Warning> warning = std::nullopt;  ///< of kWarning, always
  /// Messages of the batch, at the steps of an outbox shard; topic partitions, at
  /// kOutboxPartitionsUnwritable.
  std::int64_t messages = -1;
  /// Of kRemoteServiceUnreachable and kRemoteServiceReachable: "https://api.example:8443".
  std::string_view endpoint = {};
  /// Of kOutboxSampled: for how long the oldest message of the outbox waits; 0: none does.
  std::chrono::milliseconds waits{0};
  /// Why a message failed, as a code: "contention", "program", "conflict".
  std::string_view reason = {};
  std::string_view sqlstate = {};    ///< of the failure; empty: PostgreSQL did not report it
  std::uint32_t attempt = 0;         ///< of kAttemptFailed: its number; 0: it is not counted
  bool is_final = false;             ///< of kAttemptFailed: the next event has the consequence
  std::int64_t dead_letter_id = -1;  ///< of a message that was stored; -1: unknown
  bool unchecked = false;            ///< of kMessageCommitted: without an idempotency key
  /// Of kPartitionFenced: an operator's command changed the partition, and no other process owns
  /// it.
  bool by_operator = false;
  /// The record's W3C trace context at the steps of a message; empty: it has none.
  std::string_view traceparent = {};
  const Timing* timing = nullptr;  ///< of a message that ended, if an observer needs it
  std::span<const EventField> fields = {};
};

/// Whether the offset of the step's event is that of a message. At other steps it is a position, or
/// that of a message in progress.
[[nodiscard]] bool is_of_message(Step step);

/// The offset of the message that an event is about, as `pawl partitions skip` takes it. Nullopt:
/// it is about no message.
[[nodiscard]] std::optional<std::int64_t> message_offset(const Event& event);

/// Observes the engine, as log, metrics, and alerts do. Called on worker threads and the group
/// thread, concurrently: an implementation must be thread-safe and fast, and must not throw.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Receives one event. Its views are valid during the call only.
  virtual void on_event(const Event& event) noexcept = 0;
  /// Whether this observer needs the steps of a message before its end. Each costs a network write,
  /// so the engine reports them only if an observer needs them.
  [[nodiscard]] virtual bool watches_every_step() const noexcept { return false; }
  /// Whether this observer needs Event::timing and PartitionSnapshot::waits_since. The engine
  /// measures them only if an observer needs them.
  [[nodiscard]] virtual bool watches_times() const noexcept { return false; }
};

}  // namespace pawl
