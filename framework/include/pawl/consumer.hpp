#pragma once

// A program with a main of its own.
//
//   #include <pawl/config.hpp>
//   #include <pawl/consumer.hpp>
//   #include <pqxx/pqxx>
//   #include <utility>
//
//   int main() {
//     pawl::Registry handlers;
//     handlers.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
//       tx.exec("INSERT INTO payments (payment) VALUES ($1::jsonb)",
//               pqxx::params{message.value()});
//     });
//     pawl::Consumer consumer(pawl::load_config("payments.toml"), std::move(handlers));
//     return static_cast<int>(consumer.run());  // until another thread calls consumer.stop()
//   }

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/condition.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl {

/// How a run ended. The numbers are the exit codes of `pawl run`.
enum class RunResult {
  kStopped = 0,           ///< stopped, with all messages in flight finished; or drained
  kFatal = 1,             ///< FatalError; what() was logged
  kHaltedPartitions = 4,  ///< --drain: a partition is halted, or paused before its end
  kShutdownTimeout = 5,   ///< stopped, with messages in flight; they are processed again (safe)
  kHung = 6,  ///< a handler did not return, even interrupted; its message is processed again (safe)
};

/// The state of a partition that Kafka has assigned to this process. Nullopt: unknown, or not known
/// yet.
struct PartitionSnapshot {
  TopicPartition partition;
  bool acquired = false;                               ///< this process owns it in PostgreSQL
  bool halted = false;                                 ///< `halt_reason` has the cause
  bool paused = false;                                 ///< by an operator
  std::optional<std::int64_t> next = std::nullopt;     ///< offset of the next message to process
  std::optional<std::int64_t> log_end = std::nullopt;  ///< of Kafka's log, as last reported
  /// The record timestamp of the next message to process, once it is fetched. It is measured only
  /// if an observer needs times (Observer::watches_times).
  std::optional<Timestamp> waits_since = std::nullopt;
  std::string halt_reason = {};  ///< as in the log; empty unless the partition is halted
  /// A process crashed while it owned the partition. Messages that it may have been processing are
  /// processed alone.
  bool on_probation = false;
  /// Consecutive processes that crashed while they fetched the next message. 0: a message arrived.
  std::uint32_t fetch_crashes = 0;

  /// Messages from `next` to `log_end`, at least 0, because the reported end may be older. Nullopt
  /// if the partition is halted and the log ends before `next`: then it is another log, or was
  /// truncated.
  [[nodiscard]] std::optional<std::int64_t> lag() const {
    if (!next || !log_end || (halted && *log_end < *next))
      return std::nullopt;
    return std::max<std::int64_t>(0, *log_end - *next);
  }
};

/// The engine without a command line, for programs with a main of their own.
///
/// Guarantee: the idempotency key, the effects of the handler, and the offset of a message commit
/// in one PostgreSQL transaction (docs/guarantees.md).
class Consumer {
 public:
  /// Throws ConfigErrors if options are invalid, or if the registry has no function for a handler.
  Consumer(Options options, Registry registry,
           std::vector<std::shared_ptr<Observer>> observers = {});
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// Runs until stop() is called, or until the topics are drained (EngineOptions::drain). Lost
  /// connections do not end it. Throws FatalError if the consumer cannot continue. Call it once.
  RunResult run();

  /// Makes run() finish the messages in flight and return. From any thread, any number of times,
  /// but not from a signal handler, because it is not async-signal-safe (POSIX).
  void stop();

  /// The partitions that are assigned now, ordered by topic and number. From any thread, at any
  /// time.
  [[nodiscard]] std::vector<PartitionSnapshot> partitions() const;

  /// The time since the last heartbeat of the group thread or of the monitor thread, whichever is
  /// older. It is less than 1 s, or some seconds if servers do not respond. Halted partitions do
  /// not increase it. After 1 minute, the process is stuck. It is zero while run() connects, stops,
  /// or is not running. From any thread, at any time.
  [[nodiscard]] std::chrono::milliseconds heartbeat_age() const;

  /// Why no message can be processed now, as a text. Empty: run() has connected, PostgreSQL
  /// responds, and Kafka has sent an assignment. From any thread, at any time.
  [[nodiscard]] std::string not_ready_reason() const;

  /// The number of external calls that are in progress or not recorded yet. Each holds the lease of
  /// its key. Nullopt: no handler makes external calls. From any thread, at any time.
  [[nodiscard]] std::optional<std::size_t> calls_in_flight() const;

  /// The conditions for which messages of this process wait now, other than PostgreSQL and Kafka.
  /// They are at most about a second old. Empty before run(). From any thread, at any time.
  [[nodiscard]] std::vector<Condition> conditions() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl
