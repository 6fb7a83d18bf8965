#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/bell.hpp"
#include "engine/observers.hpp"
#include "kafka/batch_producer.hpp"
#include "kafka/client.hpp"
#include "outbox/store/outbox.hpp"
#include "outbox/unwritable.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::engine {

/// Of outbox.state_topic, whose only partition it is.
inline constexpr std::int32_t kStatePartition = 0;

/// Of each Kafka transaction. After it the broker aborts what a dead relay left open; until then
/// that hides what comes behind it from read_committed readers.
inline constexpr std::chrono::milliseconds kTransactionTimeout{15000};

/// Why nothing can be published to a topic, of which Kafka was asked with its rights.
[[nodiscard]] std::string why_not_written(const kafka::TopicAnswers& answers,
                                          const std::string& topic);

/// What all lanes of a process share; outlives them. Immutable.
struct OutboxSite {
  const Options& options;
  ledger::Outbox store;
  const Observers& observers;
  std::string owner;
  std::string database_id;
  std::string kafka_cluster_id;

  /// What Kafka knows a lane by: transactional.id, and the group that commits its batch numbers.
  /// Named by database and lane alone, so that whoever has the lane shuts out whoever had it.
  [[nodiscard]] std::string name_in_kafka(std::int32_t lane) const;
  /// The transactional id of this number of the lane.
  [[nodiscard]] std::string producer_in_kafka(std::int32_t lane, std::int64_t number) const;
  /// The same of transactions that hold nothing, by which a process finds out whether Kafka lets it
  /// publish. Two that do so at once shut each other out, and try again.
  [[nodiscard]] std::string probe_in_kafka() const;
};

/// Publishes the rows of one lane for as long as it is this process's, batch by batch, on a thread,
/// a session and a producer of its own. One batch at most is in doubt:
///
///   1. PostgreSQL stores the batch's rows, number and token in the lane (on disk), if the epoch is
///      still ours;
///   2. one Kafka transaction sends the rows and commits the number, with the token beside it;
///   3. PostgreSQL removes the rows.
///
/// A topic partition that cannot be written to costs one transaction. Its rows are left out then,
/// and tried in transactions of their own, until one of these is committed.
///
/// Whoever takes the lane raises its epoch, shuts the earlier producer out of Kafka, reads the
/// committed token, and so knows whether Kafka has the batch that it finds in the lane. Whatever
/// goes wrong ends the object: the lane is taken anew.
class OutboxLane {
 public:
  /// `unwritable`: what is known of the lane's partitions. `on_end` is called once, from the lane's
  /// thread.
  OutboxLane(const OutboxSite& site, const ledger::LaneGrant& grant,
             UnwritablePartitions unwritable, std::function<void()> on_end);
  /// Waits for its thread.
  ~OutboxLane();
  OutboxLane(const OutboxLane&) = delete;
  OutboxLane& operator=(const OutboxLane&) = delete;

  /// Ends behind the batch in hand. From any thread.
  void stop();
  /// Until it has ended.
  void wait();
  /// There may be something to publish. From any thread.
  void ring() { bell_.ring(); }

  [[nodiscard]] const ledger::HeldLane& lane() const { return lane_; }
  [[nodiscard]] bool ended() const { return ended_; }
  /// It ended by an error, so the lane is better left alone for a moment.
  [[nodiscard]] bool failed() const { return failed_; }
  /// Once it has ended.
  [[nodiscard]] const std::string& why_failed() const { return why_failed_; }
  /// Once it has ended: no producer of its transactional id lives.
  [[nodiscard]] bool alone() const { return in_kafka_.alone; }
  /// Once it has ended: what it knows for the next one of its lane.
  [[nodiscard]] const UnwritablePartitions& unwritable() const { return unwritable_; }
  /// The partitions that it leaves out, and why; empty: none.
  struct LeftOut {
    std::size_t partitions = 0;
    std::string text;
  };
  [[nodiscard]] LeftOut left_out() const;
  /// Kafka and the database have let it begin.
  [[nodiscard]] bool works() const { return works_ && !failed_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Rows = std::vector<ledger::OutboxRow>;

  void run();
  [[nodiscard]] std::string end_of_relay();
  void relay();
  void recover();
  [[nodiscard]] kafka::CommittedOffset committed_batch();
  void begin_at_the_top();
  [[nodiscard]] bool publish_next();
  Rows without_held(Rows rows);
  Rows without_left_out(Rows rows) const;
  void try_again(const TopicPartition& partition);
  void tell_left_out();
  Rows without_unknown_topics(Rows rows);
  void publish(Rows rows, std::chrono::milliseconds timeout);
  [[nodiscard]] std::vector<kafka::Delivery> transact(std::span<const ledger::OutboxRow> rows,
                                                      std::chrono::milliseconds timeout);
  void note_undelivered(const kafka::Undelivered& error);
  Rows set_refused_apart(Rows rows, const std::vector<kafka::Delivery>& refused);
  void set_apart(const ledger::Outbox::Ids& ids, const std::string& status,
                 const std::string& reason);
  void begin_producer(bool one_by_one);
  void make_producer(bool one_by_one);
  void fail(std::string why);
  void emit(Step step, std::size_t rows) const;
  void emit(Step step, std::int64_t rows, const std::string& detail) const;
  void warn(const std::string& text, Warning warning = Warning::kOutboxDelayed,
            std::string_view sqlstate = {}) const;
  void tell_refused(const ledger::OutboxRow& row, const std::string& why) const;

  const OutboxSite& site_;
  const ledger::LaneGrant grant_;
  const ledger::HeldLane lane_;
  std::function<void()> on_end_;
  Bell bell_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> works_{false};
  std::string why_failed_;  // written before ended_
  mutable std::mutex left_out_mutex_;
  LeftOut left_out_;  // guarded by left_out_mutex_

  // Of the lane's thread:
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<kafka::Client> kafka_;
  std::unique_ptr<kafka::BatchProducer> producer_;
  bool one_by_one_ = false;  ///< how producer_ was made
  std::int64_t number_ = 0;  ///< of the last batch
  std::string token_;
  std::string since_;                  ///< the snapshot behind which there is more
  std::optional<std::int64_t> after_;  ///< pages of `since_` are read behind this row
  Clock::time_point next_sweep_{};
  UnwritablePartitions::Sizes known_topics_;  ///< that may be written to
  UnwritablePartitions unwritable_;
  std::optional<TopicPartition> trying_;  ///< the transaction is for it alone
  ledger::LaneProducer in_kafka_;
  std::thread thread_;
};

}  // namespace pawl::engine
