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
#include <string>
#include <string_view>

namespace pawl {

/// The steps of one message and of one partition's life, in the order in which they happen.
enum class Step {
  kAssigned,      ///< Kafka gave the partition to this process
  kAcquired,      ///< the register gave it to this process; offset = stored offset
  kPositioned,    ///< Kafka delivers from the stored offset on, or after the messages in progress
  kFetched,       ///< a message is taken in hand
  kLeased,        ///< the lease of its key is taken
  kCalled,        ///< the call has ended, or none was made
  kClaimed,       ///< BEGIN and the key's insert are done
  kDuplicate,     ///< the key was there already
  kHandled,       ///< the handler returned
  kAdvancing,     ///< the offset's compare-and-set is sent, COMMIT is not
  kCommitting,    ///< COMMIT is sent, its answer is not there
  kCommitted,     ///< the answer is there
  kSkipped,       ///< recorded as skipped and committed
  kDeadLettered,  ///< stored as a dead letter and committed; detail says why
  kRetryLater,    ///< set aside, to be tried again by itself; detail says why
  kRetried,       ///< such a message was applied, or had been; detail says which
  kParked,        ///< stored behind a dead letter of its record key and committed
  kOnProbation,   ///< a process ended: messages that it may have been running run alone now
  kOffProbation,  ///< all of these messages have run; detail has their number
  kProbation,     ///< processes have ended while they ran this message alone; detail says how many
  kFailed,        ///< one try failed; detail says why
  kFenced,        ///< another owner's epoch was found
  kInDoubt,       ///< the connection broke while a COMMIT was on its way
  kHalted,        ///< the partition stopped; detail says why, offset = stored offset
  kPaused,        ///< an operator paused the partition
  kRevoked,       ///< Kafka takes the partition away (or it was lost)
  kReleased,      ///< the register marks the hand-over clean
  kCaughtUp,      ///< the log's end was reached; offset = that end
  kLogEnd,        ///< Kafka tells another end of the partition's log than before; offset = it
  kConnected,     ///< a worker has a PostgreSQL connection (topic empty)
  kDisconnected,  ///< a worker lost it; detail says why
  kBreakerOpen,   ///< too many messages of a handler failed in a row: its partitions halt
  kDatabaseLost,  ///< a worker could not use PostgreSQL; detail has the cause (topic empty). Each
                  ///< other cause during the outage is another event
  kDatabaseBack,  ///< after that, one could
  kKafkaLost,     ///< a question to Kafka got no answer; detail and repetition as of kDatabaseLost
  kKafkaBack,     ///< after that, one did
  kRedisLost,     ///< no lease can be had from Redis; detail says why (topic empty)
  kRedisBack,     ///< after that, one was
  /// An endpoint of http handlers is unreachable: its messages wait, and no attempt counts.
  /// Event::remote is the endpoint, detail has the cause; repeated each minute (topic empty)
  kRemoteServiceUnreachable,
  kRemoteServiceReachable,  ///< after that, it responded
  /// A message of the partition has waited for a lock for ten times postgres.lock_timeout; detail
  /// names the session that holds it; repeated each minute
  kPartitionBlocked,
  kPartitionUnblocked,  ///< after that, no message of the partition waits for a lock
  kGroupAwaited,        ///< Kafka has assigned nothing for seconds; detail says what may hold it up
  kTopicRefused,    ///< Kafka refuses a topic (not authorised, say); detail says why, partition -1
  kTopicServed,     ///< after that, it serves it
  kPruned,          ///< retention removed something; detail says what (topic empty)
  kHandlersDiffer,  ///< another live process handles the topic in another way; detail says which
  kRelayed,         ///< Kafka has confirmed letters in dead_letters.topic, which are marked next
  // Of the outbox; partition = lane, offset = number of the batch, topic empty:
  kOutboxAcquired,   ///< a lane is this process's, and what Kafka has of it is known
  kOutboxBegun,      ///< PostgreSQL has stored which messages come next
  kOutboxSent,       ///< they are handed over to the Kafka client, in an open transaction
  kOutboxCommitted,  ///< Kafka has committed them
  kOutboxEnded,      ///< they are removed from the outbox
  kOutboxReleased,   ///< the lane is this process's no more; detail says why
  // Of the outbox as well, partition -1:
  kOutboxRefused,  ///< Kafka refuses a message, which is set apart; topic, detail says why
  kOutboxLeftOut,  ///< Event::messages: topic partitions that cannot be written to; detail says why
  kOutboxLate,     ///< the oldest message has waited for longer than outbox.alert_age
  kOutboxCaughtUp,  ///< after that, none has
  kOutboxSeen,      ///< Event::waits; told every few seconds by one process of a database
  kDrained,         ///< draining ends; detail names the partitions that stand before their end
  kWarning,  ///< something an operator should know; Event::warning is its code, detail says more
};

[[nodiscard]] std::string_view to_string(Step step);

/// What a kWarning is about, for whoever wants to match it: its text may change from release to
/// release, its code does not. docs/runbook.md says of each what to do.
enum class Warning {
  kDatabaseAwaited,     ///< PostgreSQL cannot be used yet, at the start
  kKafkaAwaited,        ///< Kafka does not answer yet, at the start
  kKafkaClient,         ///< a line of librdkafka's own log
  kKafkaError,          ///< Kafka reports an error of the group or of a partition's log
  kLeftOut,             ///< Kafka assigned partitions to nobody; it is asked to assign anew
  kKeyDoubtful,         ///< an idempotency key looks like the id of a thing, not of an event
  kAcquireFailed,       ///< a partition cannot be taken from the register yet
  kPositionFailed,      ///< Kafka does not take or tell a partition's position yet
  kStreamStuck,         ///< Kafka has records of a partition and delivers none
  kBufferFull,          ///< a partition is not fetched: other partitions fill kafka.buffer
  kOutOfOrder,          ///< the register refuses an offset; it and Kafka are asked again
  kNoRoom,              ///< the server has no room for what must be stored beside messages
  kRegisterUnread,      ///< operators' changes of the register are not seen now
  kSessionRestored,     ///< a handler changed settings of its session, or removed its prepared
                        ///< statements; pawl restored them
  kWrongDatabase,       ///< postgres.url leads to another database; nothing is processed there
  kRegisterWentBack,    ///< the database has lost commits; their messages are processed again
  kNotExamined,         ///< whether a message or its handler is at fault cannot be found out now
  kFailureNotStored,    ///< a failed attempt, a dead letter or its mark cannot be stored yet
  kLogEndNotStored,     ///< the step over the end of a log cannot be stored yet
  kHaltNotStored,       ///< a partition must halt, and that cannot be stored yet
  kHandOverNotStored,   ///< the next owner cannot see that a hand-over was clean
  kPresenceNotStored,   ///< other processes of the group cannot be compared with this one
  kNotDurable,          ///< with durability = "replayable": nothing can be put on disk now
  kCallbackThrew,       ///< code that is told of duplicates threw
  kWorkerStuck,         ///< a statement or a handler's code takes longer than it ever may
  kStalledSession,      ///< a session of an earlier owner held locks: it was ended, or cannot be
  kShutdownTimeout,     ///< consumer.shutdown_timeout has passed
  kAlertFailed,         ///< an alert could not be sent
  kDeadLetterTopic,     ///< letters wait for dead_letters.topic
  kRetentionFailed,     ///< retention removes nothing for now
  kRetentionUncertain,  ///< retention cannot ask Kafka, or read a time, and keeps more than it must
  kRetryLater,          ///< dead letters cannot be tried again by themselves now
  kOutbox,              ///< messages wait in the outbox, and the text says why
  kLeaseLost,           ///< a call's lease was another's before its outcome could be recorded
  kLeasesNotExtended,   ///< leases cannot be extended now; the calls under them are told to end
  kKeysHeld,            ///< a partition holds keys back for longer than twice their retention
  kCrashLoop,           ///< processes ended while they fetched the next message of a partition
  kSequenceBehind,      ///< a sequence gives numbers that its table has; the text has the repair
};

/// Its code: "database_awaited".
[[nodiscard]] std::string_view to_string(Warning warning);

/// How the transaction of a message travelled to PostgreSQL.
enum class Company {
  kAlone,
  kPipeline,  ///< with those of others, each committed by itself
  kBatch,     ///< its transaction is that of others too
};

/// How long a message took. What was not there, or cannot be told from the rest, is nullopt.
struct Timing {
  using Duration = std::chrono::steady_clock::duration;

  /// From when a worker took it out of Kafka's queue until the answer to COMMIT.
  std::optional<Duration> since_fetched = std::nullopt;
  /// In its handler, or the call of a leased one; of a batch at its last message. Statements that
  /// travel with the COMMIT are in `commit` instead.
  std::optional<Duration> handler = std::nullopt;
  /// The round trip with the COMMIT; of messages that travelled together at the last of them.
  std::optional<Duration> commit = std::nullopt;
  Company company = Company::kAlone;
  /// That travelled together, at the last of them; else 0.
  std::size_t messages = 0;
};

/// One event. The views are valid only during the call.
struct Event {
  Step step{};
  std::string_view topic = {};
  std::int32_t partition = -1;
  /// Of a message at the steps that are one's, else a position: see the steps.
  std::int64_t offset = -1;
  std::string_view key = {};  ///< idempotency key, where known; never logged above debug level
  std::string_view detail = {};
  std::int64_t lag = -1;  ///< messages behind the log's end, where known
  /// Where `offset` is a position: the message that this is about, for example that which halts a
  /// partition. Nullopt: none; ask message_offset().
  std::optional<std::int64_t> message_offset = std::nullopt;
  std::string_view handler = {};  ///< its label; of kDeadLettered, kBreakerOpen, kHalted if known
  std::optional<Warning> warning = std::nullopt;  ///< of kWarning, always
  /// Messages of the batch, at the steps of an outbox lane; topic partitions, at kOutboxLeftOut.
  std::int64_t messages = -1;
  /// Of kRemoteServiceUnreachable and kRemoteServiceReachable: "https://api.example:8443".
  std::string_view remote = {};
  /// Of kOutboxSeen: for how long the outbox's oldest message waits; 0: none does.
  std::chrono::milliseconds waits{0};
  /// Of kFailed: whose fault it is, in one of few words: "contention", "program", "conflict".
  std::string_view failure_class = {};
  bool unchecked = false;  ///< of kCommitted: without an idempotency key
  /// Of kFenced: an operator's command changed the partition, and no other process owns it.
  bool by_operator = false;
  /// The record's W3C trace context at the steps that end a message or a try; empty: it has none.
  std::string_view traceparent = {};
  const Timing* timing = nullptr;  ///< of a message that ended, when an observer wants it
};

/// Whether a step ends a message or a try of it: then the event's offset is the message's. At other
/// steps it is a position, or that of a message on its way.
[[nodiscard]] bool is_of_message(Step step);

/// The offset of the message that an event is about, as `pawl partitions skip` takes it. Nullopt:
/// it is about none.
[[nodiscard]] std::optional<std::int64_t> message_offset(const Event& event);

/// Watches the engine: logs, metrics and tests are fed by it. Called on worker threads and the
/// group thread, concurrently: implementations are thread-safe, fast, and do not throw.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event& event) noexcept = 0;
  /// Per-message steps other than those that end it (kCommitted ... kParked) and kFailed are
  /// reported only when an observer wants them: reporting them costs a network write each.
  [[nodiscard]] virtual bool watches_every_step() const noexcept { return false; }
  /// Clocks are read for Event::timing, and for PartitionSnapshot::waits_since, only when an
  /// observer wants them.
  [[nodiscard]] virtual bool watches_times() const noexcept { return false; }
};

}  // namespace pawl
