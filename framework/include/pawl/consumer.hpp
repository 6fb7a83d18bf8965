#pragma once

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

/// How a run ended. The numbers are the process exit codes of `pawl run`.
enum class RunResult {
  kStopped = 0,           ///< stopped or drained; all in-flight messages finished
  kFatal = 1,             ///< FatalError; what() was logged
  kHaltedPartitions = 4,  ///< drained, but a partition is halted, or is paused before its end
  kShutdownTimeout = 5,   ///< stopped; unfinished messages will be processed again
  kHung = 6,              ///< a handler did not return; its message will be processed again
};

/// Where this process stands with a partition that Kafka has assigned to it. What is not known
/// (yet) is nullopt.
struct PartitionSnapshot {
  TopicPartition partition;
  bool acquired = false;                            ///< this process owns its offset in PostgreSQL
  bool halted = false;                              ///< why says `halt_reason`
  bool paused = false;                              ///< by an operator
  std::optional<std::int64_t> next = std::nullopt;  ///< offset of the next message to process
  std::optional<std::int64_t> log_end = std::nullopt;  ///< of Kafka's log, as it was told last
  /// When the next message to process was produced, by its record, once it is fetched. Only where
  /// an observer wants times (Observer::watches_times).
  std::optional<Timestamp> waits_since = std::nullopt;
  std::string halt_reason = {};  ///< as the log has it; empty unless it is halted
  /// A process ended without giving it back: messages that it may have been running run alone.
  bool on_probation = false;
  /// Processes in a row that ended while they fetched the next message; 0 once anything arrived.
  std::uint32_t fetch_crashes = 0;

  /// Messages between the two: at least 0, for a process that runs may be ahead of what it was
  /// told. Where it is halted in front of a log that ends before, that is another log, or was cut
  /// off.
  [[nodiscard]] std::optional<std::int64_t> lag() const {
    if (!next || !log_end || (halted && *log_end < *next))
      return std::nullopt;
    return std::max<std::int64_t>(0, *log_end - *next);
  }
};

/// A consumer without a command line, for programs with their own main(). A method that any thread
/// may call states this.
///
///   pawl::Registry registry;
///   registry.handler("payment", [](pqxx::dbtransaction& tx, const pawl::Message& message) {
///     tx.exec("INSERT INTO payments (payload) VALUES ($1)", pqxx::params{message.value()});
///   });
///   pawl::Consumer consumer(pawl::load_config("payments.toml"), std::move(registry));
///   const auto result = consumer.run();
///
/// The idempotency key, the effects of the handler, and the processed offset of a message commit in
/// one PostgreSQL transaction (docs/guarantees.md).
class Consumer {
 public:
  /// Validates the options against the registry; throws ConfigErrors.
  Consumer(Options options, Registry registry,
           std::vector<std::shared_ptr<Observer>> observers = {});
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// Runs until stop() is called, or until the topics are drained (`consumer.drain`). Throws
  /// FatalError if the consumer cannot continue. Lost connections do not stop it. Call it once.
  RunResult run();

  /// Makes run() finish the in-flight messages and return. Any thread may call it, any number of
  /// times. It is not async-signal-safe.
  void stop();

  /// The partitions that are assigned now, in order of topic and number. From any thread, at any
  /// time.
  [[nodiscard]] std::vector<PartitionSnapshot> partitions() const;

  /// Since when the slower of the consumer's two watching threads has made no round: that which
  /// talks to the group, and that which looks after handlers' calls and the logs' ends. Below a
  /// second while all is well. Servers that do not answer make it some seconds and a halted
  /// partition nothing, so that a minute says that the process is stuck. Zero while run() connects,
  /// ends in order, or is not running. From any thread, at any time.
  [[nodiscard]] std::chrono::milliseconds silent_for() const;

  /// Why no message can be processed now, for people; empty: run() is in its rounds, PostgreSQL
  /// answers, and Kafka has said which partitions are this process's. From any thread, at any time.
  [[nodiscard]] std::string unready() const;

  /// Calls of leased handlers under way, or whose outcome is not stored yet: each holds the lease
  /// of its key. Nullopt: no handler is leased. From any thread, at any time.
  [[nodiscard]] std::optional<std::size_t> leases_held() const;

  /// What messages of this process wait for now, other than its database and its Kafka; at most
  /// about a second old. Empty before run(). From any thread, at any time.
  [[nodiscard]] std::vector<Condition> conditions() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace pawl
