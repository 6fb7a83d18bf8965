#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kafka/bootstrap.hpp"
#include "kafka/client_handle.hpp"
#include "kafka/fetch_buffer.hpp"
#include "kafka/handles.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// Of librdkafka, as it is linked: "2.14.2".
[[nodiscard]] const char* library_version();

/// Within this a broker answers a question, or the question is asked again later.
inline constexpr std::chrono::milliseconds kAnswerTimeout{3000};

struct TopicDescription {
  std::string id;  ///< KIP-516, base64; empty where the broker has none
  std::int32_t partitions = 0;
  /// False: an authorizer denies it, or the topic is internal. True also where it was not asked
  /// for, or the broker has no authorizer.
  bool may_write = true;
  bool internal = false;                   ///< Kafka's own: no program may write to it
  std::set<std::int32_t> leaderless = {};  ///< partitions that nobody can write to now
};

/// What Kafka says about several topics. One that does not exist is in neither.
struct TopicAnswers {
  std::map<std::string, TopicDescription> described;
  std::map<std::string, KafkaError> refused;  ///< not authorised, for example
};

/// The offsets between which a partition's log holds records: [start, end).
struct LogRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// Where to read on.
struct LogPosition {
  std::int64_t offset = 0;
  /// KIP-320: of the record in front of it, as it was read; nullopt: unknown, and not compared.
  std::optional<std::int32_t> leader_epoch = {};
};

/// Of all members together.
struct GroupAssignment {
  bool settled = false;  ///< false: the group is empty, or between two assignments
  std::set<TopicPartition> partitions;
};

struct CommittedOffset {
  std::int64_t next = -1;  ///< the next offset to read; -1: none committed
  std::string metadata;
};

/// Why librdkafka rejects a property of its CONFIGURATION.md, without its value (which may be a
/// password); empty: it accepts the property.
[[nodiscard]] std::string property_problem(const std::string& name, const std::string& value);

/// What every client of ours begins with.
[[nodiscard]] ConfHandle common_conf(const KafkaOptions& options);

/// Throws KafkaError when librdkafka refuses it.
void set_property(rd_kafka_conf_t* conf, const std::string& name, const std::string& value);

/// One librdkafka consumer instance, and the questions that any thread may ask it. Every call is
/// bounded by its timeout and throws KafkaError. Subscribing and assignments are Membership's.
class Client {
 public:
  /// Throws KafkaError when librdkafka refuses a property. Does not connect yet. kafka.buffer is
  /// divided for so many partitions.
  Client(const KafkaOptions& options, LogFunction log, std::size_t partitions = 1);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] rd_kafka_t* raw() const { return client_; }
  [[nodiscard]] const BufferPlan& plan() const { return plan_; }

  /// Throws unless a broker can be used, as soon as that is known: when each bootstrap server has
  /// refused the connection or the client, or no one answers in time. For a client whose events
  /// nobody else takes.
  void require_usable(std::chrono::milliseconds timeout) const;
  /// KIP-78; throws when no broker answers in time.
  std::string cluster_id(std::chrono::milliseconds timeout) const;
  /// Of all topics that this user may describe.
  [[nodiscard]] std::vector<std::string> topic_names(std::chrono::milliseconds timeout) const;
  /// A topic that Kafka refuses to describe hides no other one. `rights`: ask for may_write as well
  /// (KIP-430).
  [[nodiscard]] TopicAnswers describe_each(const std::vector<std::string>& topics,
                                           std::chrono::milliseconds timeout,
                                           bool rights = false) const;
  /// The same where each of them is needed: throws when one is refused. Topics that do not exist
  /// are absent from the answer.
  std::map<std::string, TopicDescription> describe(const std::vector<std::string>& topics,
                                                   std::chrono::milliseconds timeout) const;
  /// Log start and end of the partitions asked for; absent is what has no leader or does not exist.
  /// `end` is the last stable offset, behind which
  /// a read_committed consumer sees nothing.
  std::map<TopicPartition, LogRange> log_ranges(const std::vector<TopicPartition>& partitions,
                                                std::chrono::milliseconds timeout) const;
  /// The end of the log with what open transactions wrote; throws where log_ranges() leaves out.
  std::int64_t high_watermark(const TopicPartition& partition,
                              std::chrono::milliseconds timeout) const;
  /// The same of several partitions; absent is what has no leader or does not exist.
  std::map<TopicPartition, std::int64_t> high_watermarks(
      const std::vector<TopicPartition>& partitions, std::chrono::milliseconds timeout) const;
  /// The first offset at or after a time; the log's end where there is none. Absent as above.
  std::map<TopicPartition, std::int64_t> offsets_at(const std::vector<TopicPartition>& partitions,
                                                    Timestamp time,
                                                    std::chrono::milliseconds timeout) const;
  /// Who has what in the group. Nullopt: this user may not describe it.
  [[nodiscard]] std::optional<GroupAssignment> group_assignment(
      std::chrono::milliseconds timeout) const;
  /// What the group committed to Kafka.
  std::map<TopicPartition, CommittedOffset> committed(const std::vector<TopicPartition>& partitions,
                                                      std::chrono::milliseconds timeout) const;
  /// The value of a broker's setting, whichever broker answers; nullopt: it does not know that.
  /// Throws also where this user may not DESCRIBE_CONFIGS of the cluster.
  [[nodiscard]] std::optional<std::string> broker_setting(const std::string& name,
                                                          std::chrono::milliseconds timeout) const;
  /// With the broker's own defaults, of replication as well. Well where it exists already.
  void create_topic(const std::string& topic, std::int32_t partitions,
                    std::chrono::milliseconds timeout) const;

 private:
  /// Of the brokers, and of all topics where they are asked for; throws unless a broker answers in
  /// time.
  [[nodiscard]] MetadataHandle metadata(bool topics, std::chrono::milliseconds timeout) const;
  /// Throws unless a broker answers in time. librdkafka (2.14.2) connects again without a pause, a
  /// thousand times a second, while an admin request waits for a broker: each failure wakes the
  /// request, which asks for the connection at once ("Expedite next reconnect"). A metadata request
  /// waits as it should, so that comes first.
  void require_broker(std::chrono::milliseconds timeout) const;
  std::map<TopicPartition, std::int64_t> list_offsets(const std::vector<TopicPartition>& partitions,
                                                      std::int64_t spec,
                                                      rd_kafka_IsolationLevel_t isolation,
                                                      std::chrono::milliseconds timeout) const;
  /// The same right behind an answer, so that no broker is looked for again.
  std::map<TopicPartition, std::int64_t> list_more_offsets(
      const std::vector<TopicPartition>& partitions, std::int64_t spec,
      rd_kafka_IsolationLevel_t isolation, std::chrono::milliseconds timeout) const;

  void note_trouble(const std::string& text);
  /// ". librdkafka: ...", its last log line about brokers that it cannot use, or why there is no
  /// token.
  [[nodiscard]] std::string cause() const;

  mutable std::mutex trouble_mutex_;
  std::string trouble_;  // guarded by trouble_mutex_
  BufferPlan plan_;
  mutable Bootstrap bootstrap_;
  std::string group_;
  ClientHandle handle_;  ///< its threads use what is above
  rd_kafka_t* client_;
};

}  // namespace pawl::kafka
