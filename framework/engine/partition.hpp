#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ahead.hpp"
#include "engine/backoff.hpp"
#include "engine/context.hpp"
#include "engine/head.hpp"
#include "engine/inbox.hpp"
#include "engine/pace.hpp"
#include "engine/partition_status.hpp"
#include "engine/phase.hpp"
#include "engine/positions.hpp"
#include "engine/run_gate.hpp"
#include "engine/suspect_choice.hpp"
#include "engine/verdict.hpp"
#include "kafka/partition_stream.hpp"
#include "ledger/offset_register.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// One partition in the hands of a worker, from assignment to revocation: a state machine
/// (engine/phase.hpp) over what the register said of it, and the parts that know its records
/// (Inbox), the message at its head (Head) and how many messages go together (Pace). It changes
/// nothing in PostgreSQL. Used by the worker's thread only.
/// More than 25 members, for it is what all others speak of: half of them give sight of a part.
class Partition {
 public:
  using Clock = std::chrono::steady_clock;

  /// What the register said.
  struct Held {
    std::optional<ledger::OwnerEpoch> epoch;
    ledger::SourceId source{};
    std::string topic_id;
    ledger::Position stored;                   ///< as committed by us since
    std::optional<std::int32_t> leader_epoch;  ///< KIP-320: of the record at `stored`, if known
    /// Another process' session, which may hold locks.
    std::optional<PreviousOwner> previous_owner;
  };

  /// What is known of what comes first after an acquire (engine/crash_loop.hpp).
  struct FirstFetch {
    std::uint32_t crashes = 0;  ///< processes in a row that ended while they fetched it
    bool arrived = false;
    /// It has the process' FetchTurn, and waits until no handler runs.
    std::optional<Clock::time_point> turn_since = std::nullopt;
    /// It is marked and fetched since then.
    std::optional<Clock::time_point> fetched_since = std::nullopt;
    RunGate::Pass alone = {};  ///< no handler runs meanwhile
  };

  Partition(Context& context, std::shared_ptr<kafka::PartitionStream> stream);
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  [[nodiscard]] const std::shared_ptr<kafka::PartitionStream>& stream() const { return stream_; }
  [[nodiscard]] const TopicPartition& name() const { return stream_->partition(); }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] bool running() const { return phase_ == Phase::kRunning; }
  [[nodiscard]] const Held& held() const { return held_; }
  /// Acquired over the connection that the worker has now, or compared with the register over it
  /// (Worker::poll_register). If not, a crash of the database may have
  /// taken back what `status` says, although the register still has our epoch.
  [[nodiscard]] bool held_here() const { return held_.epoch && phase_ != Phase::kAcquiring; }
  [[nodiscard]] PartitionStatus& status() const { return *status_; }
  [[nodiscard]] Head& head() { return head_; }
  [[nodiscard]] const Head& head() const { return head_; }
  [[nodiscard]] FirstFetch& first_fetch() { return first_fetch_; }
  /// Which of its messages may be why another process ended (engine/probation.hpp).
  [[nodiscard]] SuspectChoice& suspects() { return suspects_; }
  [[nodiscard]] const SuspectChoice& suspects() const { return suspects_; }
  /// Whether the first of the inbox is one of them.
  [[nodiscard]] bool first_is_suspect() const {
    return !inbox_.empty() && inbox_.front().is_message() &&
           suspects_.has(inbox_.front().record.offset());
  }
  /// As far as is known, the first of the inbox need not run alone.
  [[nodiscard]] bool first_is_plain() const { return head_.is_plain() && !first_is_suspect(); }
  [[nodiscard]] const Inbox& inbox() const { return inbox_; }
  [[nodiscard]] AheadOfOffset& ahead() { return ahead_; }
  [[nodiscard]] const AheadOfOffset& ahead() const { return ahead_; }
  [[nodiscard]] Pace& pace() { return pace_; }
  [[nodiscard]] const Pace& pace() const { return pace_; }

  [[nodiscard]] Message view(const Inbox::Item& item) const {
    return item.record.view(name().topic, held_.topic_id);
  }
  /// The register's step over this record; behind which offset is the record's own knowledge.
  [[nodiscard]] ledger::Advance step_over(const Inbox::Item& item) const;

  /// Whether the worker's own thread runs the message at this offset next, or once the partition is
  /// acquired again: it is the first, and something is known of it that keeps it alone.
  [[nodiscard]] bool runs_alone_next(std::int64_t offset) const;

  // When:
  /// Nothing is tried before.
  [[nodiscard]] bool is_due(Clock::time_point now) const { return now >= not_before_; }
  /// When there is something to do; nullopt: not before something happens.
  [[nodiscard]] std::optional<Clock::time_point> due() const;
  void wait(Clock::duration time) { not_before_ = Clock::now() + time; }
  void back_off(Action::Wait wait);
  /// Ends the pause behind a lock.
  void lock_released();
  /// Nothing is tried for so long. What was fetched would only keep room in kafka.buffer from
  /// others meanwhile, so where it is long it is fetched again.
  void rest(Clock::duration time);
  /// No message of the window runs, and none starts before `until`. If that is a second or more,
  /// messages that have not started are fetched again.
  void make_room(Clock::time_point until);
  /// The server has no disk, memory or connection to spare: waited for as for a server that is
  /// away.
  void wait_for_room(const std::string& why);
  void has_room();

  // On the way to its records:
  /// Ours is to be shown to Kafka before the register is asked again: somebody took the partition.
  [[nodiscard]] bool must_prove() const { return must_prove_; }
  void proven() { must_prove_ = false; }
  /// The log's range, as asked for many partitions at once, a moment ago.
  void note_range(const std::optional<kafka::LogRange>& range);
  [[nodiscard]] const std::optional<kafka::LogRange>& range() const { return range_; }
  /// The register has given it to us; whether it may run is said next.
  void granted(const Positioned& positioned);
  /// It may run, or must not.
  void go(bool once_more, bool row_halted);
  void stop(bool halted, bool paused, std::string_view reason);
  /// The register has not given it to us, or only to be halted. `again`: when it is asked again
  /// where there is no row to store a halt in.
  void refused(const Refused& refused, std::chrono::milliseconds again);
  /// Where Kafka delivers from: after the stored offset and the messages of the window.
  [[nodiscard]] ledger::Position taken() const { return ahead_.taken(held_.stored); }
  /// Tells Kafka to deliver from taken(). Throws kafka::KafkaError.
  void seek();
  /// Kafka did not take the position; the number of times that it did not.
  std::uint32_t seek_failed(Clock::duration pause);

  // Its records:
  struct Fetched {
    bool came = false;                  ///< there is more in the inbox
    std::vector<kafka::Record> errors;  ///< of Kafka's, about which somebody must do something
  };
  /// Takes what has been fetched, up to so many. It may not be running any more.
  Fetched take(std::size_t most);
  /// The first `items` of the inbox are behind, the last of them a message, and took so long.
  void moved_past(std::size_t items = 1, Clock::duration took = {});
  /// Takes the first message out of the inbox.
  [[nodiscard]] Inbox::Item take_front();
  /// So many of the first in the window are behind; the next ones may be at `again`.
  void passed_ahead(std::size_t count, Clock::time_point again);
  /// There is more behind the end of the log, so that it is none.
  void skip_end();
  /// The end of the log is behind; `stored`: so is what stands before it, by the register.
  void passed_end(bool stored);

  // What goes wrong:
  /// Kafka is told the position again.
  void seek_again() { happens(Happening::kSeekAgain); }
  /// The register is asked again; `must_prove`: Kafka before it.
  void acquire_again(bool must_prove);
  void doubt_topic();
  /// Kafka cannot deliver from the position. Acquiring again holds it against the log's range; when
  /// Kafka refuses it as well then, the next acquire halts. What was fetched and not processed is
  /// fetched again.
  void position_refused(const std::string& why, Clock::duration pause);
  /// The register has its halt. `retry_after`: it is tried again by itself, without losing its
  /// place. Returns whether that is news.
  bool halted(std::string_view reason, std::optional<std::chrono::milliseconds> retry_after);

  /// It is revoked: what was fetched goes.
  void let_go();

  void tell(Step step, std::int64_t offset, std::string_view detail = {}) const;
  /// Adds the partition, the offset, and what is known of the message at it.
  void emit(Event event, std::int64_t offset) const;
  /// The partition halted. `traceparent`: of the message that halts it.
  void tell_halted(const ledger::Halt& halt, std::string_view traceparent = {}) const;
  /// A halted partition is acquired, and tries again what halted it.
  void tell_retried(const ledger::Acquired& acquired) const;
  /// Of the message at this offset, if it is the first that is not behind; empty: it has none, or
  /// is another.
  [[nodiscard]] std::string traceparent_of(std::optional<std::int64_t> offset) const;
  /// Reports that the register has another epoch; `by_operator`: a command raised it.
  void tell_fenced(bool by_operator) const;
  /// Something is the matter with it, where it stands.
  void warn(Warning warning, std::string_view detail) const;

 private:
  bool happens(Happening what);
  void stored(ledger::Position position, std::optional<std::int32_t> leader_epoch);
  void stop_fetching();
  void clear();
  void head_is_behind();
  void reached_end(std::int64_t end);
  void note_next();
  bool watch_stream(Clock::time_point now);

  Context& context_;
  const std::shared_ptr<kafka::PartitionStream> stream_;
  const std::shared_ptr<PartitionStatus> status_;
  Phase phase_ = Phase::kAcquiring;
  Clock::time_point not_before_{};
  Held held_;
  Inbox inbox_;
  Head head_;
  FirstFetch first_fetch_;
  SuspectChoice suspects_;
  AheadOfOffset ahead_;
  Pace pace_;
  std::optional<kafka::LogRange> range_;
  bool must_prove_ = false;
  bool fetching_ = false;      ///< Kafka was told to deliver
  bool without_room_ = false;  ///< and the operator was told so
  std::uint32_t failed_seeks_ = 0;
  Backoff acquire_backoff_;
  Backoff retry_backoff_;
};

}  // namespace pawl::engine
