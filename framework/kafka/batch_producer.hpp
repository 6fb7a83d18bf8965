#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kafka/bootstrap.hpp"
#include "kafka/client.hpp"
#include "kafka/produce.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// Messages of a batch were not stored, for a reason that is not their own.
class Undelivered : public KafkaError {
 public:
  Undelivered(rd_kafka_resp_err_t code, const std::string& message,
              std::set<TopicPartition> partitions, bool others_delivered)
      : KafkaError(code, message),
        partitions_(std::move(partitions)),
        others_delivered_(others_delivered) {}
  /// Where they were to go, as their delivery reports say; empty: that is not the reason.
  [[nodiscard]] const std::set<TopicPartition>& partitions() const { return partitions_; }
  /// Kafka can store messages for other partitions: some were stored, or the error is a
  /// partition's.
  [[nodiscard]] bool others_delivered() const { return others_delivered_; }

 private:
  std::set<TopicPartition> partitions_;
  bool others_delivered_;
};

/// One librdkafka producer that sends batch after batch, in order.
///
/// With an id a batch is a Kafka transaction (KIP-98): its messages reach read_committed readers
/// together or not at all, with an offset that a group commits in the same transaction. Whatever
/// throws leaves the transaction's fate unknown: destroy the object, and find out by a new one of
/// the same id what Kafka has (init(), and then the group's committed offset). The transaction of
/// an object that is destroyed is aborted by the next producer of its id, or by its timeout.
///
/// Without an id it is an idempotent producer: of a batch that throws, or of which Kafka refuses a
/// message, any part may be stored. One thread.
class BatchProducer {
 public:
  struct Settings {
    /// transactional.id: of producers with one id only the newest may write. Empty: none.
    std::string id;
    /// After which the broker aborts a transaction that nobody ends (transaction.timeout.ms).
    std::chrono::milliseconds timeout{15000};
    std::size_t largest = 0;  ///< as in producer_conf()
    /// Each message is a request of its own, so that Kafka names the one that it refuses.
    bool one_by_one = false;
    /// Set by another thread when nobody waits for long any more: then each call ends within
    /// seconds. May be null.
    const std::atomic<bool>* stopping = nullptr;
  };

  /// Throws KafkaError when librdkafka refuses a property. Does not connect yet.
  BatchProducer(const KafkaOptions& options, const Settings& settings, LogFunction log);
  BatchProducer(const BatchProducer&) = delete;
  BatchProducer& operator=(const BatchProducer&) = delete;

  /// Shuts out all earlier producers of this id, and waits until what they had open has ended.
  /// Before all else; may be called again when it failed. Throws KafkaError; kTransactionPending:
  /// they are shut out, but Kafka cannot end their transaction in each of its partitions yet.
  /// Nothing without an id.
  void init(std::chrono::milliseconds timeout);

  /// Begins a batch; throws KafkaError.
  void begin();
  /// Queues a copy; commit() tells of it. `tag` names it. `partition` nullopt: as the key says.
  void send(const std::string& topic, const Outgoing& message, std::int64_t tag,
            std::optional<std::int32_t> partition = std::nullopt);

  /// An offset that a group without members commits, with a text beside it.
  struct GroupOffset {
    std::string group;
    TopicPartition partition;
    CommittedOffset committed;
  };
  /// Empty: everything that was sent is stored, and committed with the offset. Else Kafka has
  /// refused these, without `one_by_one` perhaps for a neighbour in their request, and nothing is
  /// committed; without an id others may be stored. Throws KafkaError: unknown; Undelivered where
  /// messages are known not to be stored.
  std::vector<Delivery> commit(const GroupOffset& offset, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  /// The end of a call's time, which comes sooner once `stopping` is set.
  class Deadline;

  /// Until each message has its delivery report; returns those that Kafka refused.
  std::vector<Delivery> settle(Deadline& deadline);
  /// Takes the next report of librdkafka; false: there was none in that time.
  bool take_report(std::chrono::milliseconds timeout);
  [[noreturn]] void give_up();
  /// A message that is not stored: refused for itself, or for another reason.
  void note_failure(std::int64_t tag, rd_kafka_resp_err_t error,
                    const std::optional<TopicPartition>& partition);

  Bootstrap bootstrap_;
  ClientHandle handle_;
  const std::atomic<bool>* stopping_;
  const bool transactions_;
  rd_kafka_t* client_;
  QueueHandle events_;
  std::size_t undecided_ = 0;
  std::vector<Delivery> refused_;  ///< since begin()
  std::string failed_;             ///< why a message was not stored, for a reason not its own
  std::set<TopicPartition> undelivered_;  ///< where such messages were to go
  std::set<TopicPartition> at_fault_;     ///< of those, by their errors
  bool of_all_ = false;                   ///< such an error is the whole producer's
  bool delivered_ = false;                ///< one was stored since begin()
  std::string problem_;                   ///< what librdkafka said last of brokers
};

}  // namespace pawl::kafka
