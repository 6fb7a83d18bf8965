#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "pawl/topic_partition.hpp"

namespace pawl::engine {

/// The topic partitions to which nothing of a lane can be written now. Their messages are left out
/// of the lane's transactions, and tried in transactions of their own, so that all others are
/// published. A key's messages are left out together, so they keep their order. Uses no server and
/// no clock.
class UnwritablePartitions {
 public:
  using Clock = std::chrono::steady_clock;
  /// The partition to which a key leads among so many; nullopt: any.
  using Chooser = std::function<std::optional<std::int32_t>(const std::optional<std::string>& key,
                                                            std::int32_t partitions)>;
  /// How many partitions a topic has.
  using Sizes = std::map<std::string, std::int32_t, std::less<>>;

  /// What Kafka has said of a transaction that was not committed.
  struct Failure {
    std::set<TopicPartition> undelivered;  ///< where messages were to go that Kafka has not stored
    bool others_delivered = false;         ///< Kafka has stored messages for others
    std::string why;
  };
  /// What becomes of a message in the next transaction.
  struct Place {
    bool left_out = false;
    std::optional<std::int32_t> partition;  ///< the one to write to; nullopt: by its key
    friend bool operator==(const Place&, const Place&) = default;
  };

  explicit UnwritablePartitions(Chooser chooser) : chooser_(std::move(chooser)) {}

  /// True: the next transaction is another one than the one that failed. False: it fails for all
  /// of Kafka, as far as anybody knows.
  bool note(const Failure& failure, const Sizes& sizes, Clock::time_point now);
  /// A transaction was committed, so Kafka serves.
  void committed() { failed_whole_ = false; }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// `id` spreads the messages that may go to any partition.
  [[nodiscard]] Place place(const std::string& topic, const std::optional<std::string>& key,
                            std::int64_t id) const;
  /// It is left out because of this partition.
  [[nodiscard]] bool leads_to(const TopicPartition& partition, const std::string& topic,
                              const std::optional<std::string>& key) const;

  /// One that should be tried now.
  [[nodiscard]] std::optional<TopicPartition> due(Clock::time_point now) const;
  /// It is tried now: whatever becomes of that, the others come before it is tried again.
  void tried(const TopicPartition& partition, Clock::time_point now);
  /// It was looked at, and still has no leader.
  void has_no_leader(const TopicPartition& partition, Clock::time_point now);
  /// It is left out no more.
  void writable(const TopicPartition& partition) { entries_.erase(partition); }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// "orders [3] (WHY), payments [0] (WHY)"
  [[nodiscard]] std::string text() const;

 private:
  struct Entry {
    std::int32_t partitions = 0;  ///< of its topic, when it was left out
    int failures = 0;
    Clock::time_point next;
    std::string why;
  };

  [[nodiscard]] std::int32_t partitions_of(const std::string& topic) const;

  Chooser chooser_;
  std::map<TopicPartition, Entry> entries_;
  bool failed_whole_ = false;  ///< the last transaction did, and named no partition
};

}  // namespace pawl::engine
