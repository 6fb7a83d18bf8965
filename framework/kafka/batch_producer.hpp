#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kafka/bootstrap.hpp"
#include "kafka/client.hpp"
#include "kafka/produce.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

class TokenRefresh;

/// One librdkafka producer that sends batch after batch, in order.
///
/// With an id a batch is a Kafka transaction (KIP-98): its messages reach read_committed readers
/// together or not at all, with an offset that a group commits in the same transaction. Whatever
/// throws leaves the transaction's fate unknown: destroy the object, and find out by a new one of
/// the same id what Kafka has (init(), and then the group's committed offset).
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
  /// An open transaction is aborted by the next producer of this id, or by its timeout.
  ~BatchProducer();
  BatchProducer(const BatchProducer&) = delete;
  BatchProducer& operator=(const BatchProducer&) = delete;

  /// Shuts out all earlier producers of this id, and waits until what they had open has ended.
  /// Once, before all else. Throws KafkaError. Nothing without an id.
  void init(std::chrono::milliseconds timeout);

  /// Begins a batch; throws KafkaError.
  void begin();
  /// Queues a copy; commit() tells of it. `tag` names it.
  void send(const std::string& topic, const Outgoing& message, std::int64_t tag);

  /// An offset that a group without members commits, with a text beside it.
  struct GroupOffset {
    std::string group;
    TopicPartition partition;
    CommittedOffset committed;
  };
  /// Empty: everything that was sent is stored, and committed with the offset. Else Kafka has
  /// refused these, without `one_by_one` perhaps for a neighbour in their request, and nothing is
  /// committed; without an id others may be stored. Throws KafkaError: unknown.
  std::vector<Delivery> commit(const GroupOffset& offset, std::chrono::milliseconds timeout);

 private:
  using Clock = std::chrono::steady_clock;

  /// The end of a call's time, which comes sooner once `stopping` is set.
  class Deadline;

  /// Until each message has its delivery report; returns those that Kafka refused.
  std::vector<Delivery> settle(Deadline& deadline);
  /// A message that is not stored: refused for itself, or for another reason.
  void note_failure(std::int64_t tag, rd_kafka_resp_err_t error);
  static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text);

  LogFunction log_;
  Bootstrap bootstrap_;
  const std::atomic<bool>* stopping_;
  const bool transactions_;
  rd_kafka_t* client_ = nullptr;
  QueueHandle events_;
  std::unique_ptr<TokenRefresh> tokens_;
  std::size_t undecided_ = 0;
  std::vector<Delivery> refused_;  ///< since begin()
  std::string failed_;             ///< why a message was not stored, for a reason not its own
  std::string problem_;            ///< what librdkafka said last of brokers
};

}  // namespace pawl::kafka
