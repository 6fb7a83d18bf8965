#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "console/oldest_waiting.hpp"
#include "console/partition_view.hpp"
#include "console/terminal.hpp"
#include "dead_letters/store/view.hpp"
#include "engine/halt_rendering.hpp"
#include "leases/store/view.hpp"
#include "ledger/process_conditions.hpp"
#include "ledger/processes.hpp"
#include "ledger/register_view.hpp"
#include "ledger/server_view.hpp"
#include "outbox/store/view.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

struct StatusPartition {
  TopicPartition partition;
  std::optional<ledger::RegisterRow> row;  ///< nullopt: none, or PostgreSQL could not be asked
  std::optional<std::int64_t> end;         ///< of Kafka's log; nullopt: unknown
  /// Of the log kStalledAfter ago; nullopt: unknown, or not asked since it cannot be stalled.
  std::optional<std::int64_t> end_before;
  std::optional<double> rate;  ///< messages a second since the last look; nullopt: there was none
  bool blocked = false;        ///< its process reports that a message waits for a lock
  std::optional<Concern> concern;  ///< nullopt: PostgreSQL could not be asked
  /// Seconds until its lag is gone, at the pace between the last two looks; nullopt: there was no
  /// look before, or the lag does not shrink.
  std::optional<std::int64_t> eta_seconds;

  [[nodiscard]] std::optional<std::int64_t> lag() const;
};

/// A halt that the next assignment of a partition would cause.
struct PendingHalt {
  ledger::Halt halt;
  engine::RenderedHalt text;  ///< for the reader's configuration
};

/// One look at a consumer: what PostgreSQL and Kafka know of it. Either may be missing.
struct Status {
  InvocationOptions invocation;  ///< for the commands in its texts
  std::string cluster;
  std::string group;
  std::string bootstrap_servers;
  std::string place_kept;        ///< engine::place_kept_text()
  std::string database;          ///< without its password
  std::string postgres_problem;  ///< empty: it could be asked
  bool postgres_answers = true;  ///< also where it refuses: its problem says why
  std::string kafka_problem;     ///< empty: it answered
  /// That are named in the configuration, and do not exist.
  std::vector<std::string> missing_topics;
  /// That a pattern means, offsets are stored of, and do not exist any more.
  std::vector<std::string> gone_topics;
  bool awaits_topics = false;  ///< there are patterns alone, and they mean no topic yet
  std::map<std::string, std::string> refused_topics;    ///< that Kafka refuses to tell of, and why
  std::map<std::string, std::string> ambiguous_topics;  ///< that several patterns mean: sentences
  bool known = false;                                   ///< the database has this consumer
  std::int64_t now_ms = 0;                  ///< since 1970; PostgreSQL's clock where it answered
  std::vector<StatusPartition> partitions;  ///< by topic and number
  /// Of halted partitions, for the reader's configuration.
  std::map<TopicPartition, engine::RenderedHalt> halts;
  std::map<TopicPartition, PendingHalt> pending_halts;
  std::optional<std::int64_t> eta_seconds;  ///< of the whole lag, as of a partition
  std::optional<OldestWaiting> oldest;      ///< nullopt: no message waits, or not asked for
  std::vector<ledger::DeadLetterCount> letters;
  std::vector<std::string> processes;  ///< that reported lately that they run; named as owners are
  std::vector<ledger::DifferingTopic> differing;     ///< topics that processes handle differently
  std::vector<ledger::ProcessCondition> conditions;  ///< what messages of live processes wait for
  ledger::ServerView server;
  std::optional<ledger::OutboxStatus> outbox;  ///< nullopt: PostgreSQL could not be asked
  std::optional<ledger::LeaseCounts> leases;   ///< as the outbox, or the consumer is not known
};

/// What PostgreSQL knows.
struct StatusCounts : ConcernCounts {
  std::int64_t dead_letters = 0;     ///< that wait for an operator
  std::int64_t parked_messages = 0;  ///< behind one of those, or of the next
  std::int64_t retry_later = 0;      ///< that are tried again by themselves
};

/// Of all partitions.
struct StatusTotals {
  std::optional<std::size_t> partitions;    ///< nullopt: neither server could be asked
  std::optional<StatusCounts> counts;       ///< nullopt: PostgreSQL could not be asked
  std::optional<std::int64_t> lag;          ///< nullopt: not known of each
  std::optional<double> rate;               ///< nullopt: not known of any
  std::optional<std::int64_t> eta_seconds;  ///< as of a partition
};
[[nodiscard]] StatusTotals totals_of(const Status& status);
/// Topics that Kafka has, and of which no partition has a row.
[[nodiscard]] std::vector<std::string> unstored_topics(const Status& status);

/// How `status` is shown.
struct StatusView {
  Terminal terminal = {};
  bool all = false;            ///< every problem, topic, and group of dead letters
  bool partitions = false;     ///< a row per partition in place of a row per topic
  bool problems_only = false;  ///< neither tables nor figures
};

/// A part of the output that a small window shows or omits.
struct StatusBlock {
  enum class Kind { kHeading, kSection, kProblem, kTopic, kPartition };
  Kind kind;
  std::string text;  ///< lines, each with its line feed
};
/// In the order of priority: the verdict, problems, dead letters, figures, the table.
[[nodiscard]] std::vector<StatusBlock> status_blocks(const Status& status, const StatusView& view);
/// All blocks as one text.
[[nodiscard]] std::string status_text(const Status& status, const StatusView& view = {});
/// The status as one JSON object, for machines.
[[nodiscard]] std::string status_json(const Status& status, bool indented);
/// Live processes that wait for Kafka, by name. They own no partition, or may lose theirs.
[[nodiscard]] std::vector<std::string> kafka_waits(const Status& status);
/// Whether an operator should look, whatever else is asked for: a partition is halted or will halt,
/// no offset is stored for this consumer or for one of its topics, a named topic does not exist,
/// the outbox is late, a remote service or Kafka is unreachable for a process, or a partition has
/// waited for a lock for long.
[[nodiscard]] bool needs_somebody(const Status& status);

/// One statement of the verdict.
struct VerdictPart {
  enum class Level { kPlain, kGood, kWarn, kBad };
  Level level;
  std::string text;
};
/// The first: states of partitions and services. The second: figures.
struct Verdict {
  std::vector<VerdictPart> states;
  std::vector<VerdictPart> figures;
};
[[nodiscard]] Verdict verdict_parts(const Status& status);
/// "2 of 8 partitions halted, lag 12,345, 3 dead letters"
[[nodiscard]] std::string verdict_of(const Status& status);

}  // namespace pawl::cli
