#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "kafka/handles.hpp"
#include "kafka/intake.hpp"
#include "kafka/partition_stream.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

/// What the group decides. All calls come from Membership::poll, on the group thread, and must not
/// wait for anything.
class MembershipListener {
 public:
  virtual ~MembershipListener() = default;
  /// The partitions are ours: paused, their streams made; somebody must position and resume them.
  virtual void on_assigned(std::vector<std::shared_ptr<PartitionStream>> streams) = 0;
  /// The partitions go elsewhere. Finish and release them, then complete_revoke() from the group
  /// thread. `lost`: somebody may own them already; nothing needs to be finished.
  virtual void on_revoked(const std::vector<TopicPartition>& partitions, bool lost) = 0;
  /// `fatal`: this instance can never consume again (e.g. a fenced static member); the text ends
  /// with librdkafka's name of the error then.
  virtual void on_kafka_error(ErrorKind kind, const std::string& text, bool fatal) = 0;
  /// A record reached the main queue instead of its partition's stream, and was dropped.
  virtual void on_stray_record(const TopicPartition& partition) = 0;
  /// Kafka did not take some of the offsets of a commit_async().
  virtual void on_commit_refused() = 0;
  /// Makes the function that the intake's thread calls when the partition's stream has something.
  virtual std::function<void()> readable_callback(const TopicPartition& partition) = 0;
};

/// This process' membership in the consumer group: assignments in, revocations out. Used by the
/// group thread only, except for the members that say otherwise.
class Membership {
 public:
  Membership(Client& client, const KafkaOptions& options, MembershipListener& listener);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Joins the group (or, with manual assignment, takes `manual`).
  void start(const std::vector<std::string>& topics, const std::vector<TopicPartition>& manual);

  /// From now on these are the group's topics as far as this process is concerned; what it keeps
  /// of them goes on meanwhile. Not with manual assignment.
  void subscribe(const std::vector<std::string>& topics);

  /// Leaves the group, also as a static member, and joins it again, so that it assigns anew. Not
  /// with manual assignment.
  void rejoin(const std::vector<std::string>& topics);

  /// Serves one event, waiting for it up to `timeout`.
  void poll(std::chrono::milliseconds timeout);

  /// Gives the partitions of the revocation in progress back to Kafka.
  void complete_revoke();

  /// Makes librdkafka fetch a partition anew whose fetcher has stopped after an error (it cannot be
  /// sought then). Returns all partitions that this touched: they are paused at no useful position.
  std::vector<TopicPartition> restart_fetch(const TopicPartition& partition);

  /// Starts to leave the group; go on polling until closed().
  void close();
  [[nodiscard]] bool closed() const;

  /// Through which partitions are opened and shut; from any thread.
  [[nodiscard]] Intake& intake() { return intake_; }

  /// Positions a paused, assigned partition and lets it deliver. With the leader epoch of the
  /// record in front of `next` Kafka is asked first whether its log still holds that record
  /// (KIP-320); when it does not, an error comes out of the stream in place of records. From any
  /// thread; waits up to `timeout`; throws KafkaError (RD_KAFKA_RESP_ERR__STATE: not assigned here,
  /// or not fetching).
  void seek_and_resume(const TopicPartition& partition, const LogPosition& next,
                       std::chrono::milliseconds timeout);
  /// Stops delivery. From any thread.
  void pause(const TopicPartition& partition);

  /// Tells Kafka processed offsets, for others' lag tools; answers are not waited for. Any thread.
  struct Progress {
    TopicPartition partition;
    std::int64_t next_offset;
  };
  void commit_async(const std::vector<Progress>& progress, const std::string& metadata);

  /// Whether the broker takes this process for a current member of the group.
  struct Proof {
    bool member = true;
    /// Topics of which Kafka did not say so, and why: it may know one no more, or permit it no
    /// more, while the others are well.
    std::map<std::string, std::string> unproven;
  };
  /// Synchronous offset commits, which only a member may make, one for each topic at once. From any
  /// thread; throws KafkaError.
  Proof prove(const std::vector<Progress>& progress, const std::string& metadata,
              std::chrono::milliseconds timeout);

 private:
  void serve_early_errors();
  void serve(const EventHandle& event);
  void serve_rebalance(const EventHandle& event);
  void assign(const rd_kafka_topic_partition_list_t* partitions);
  void unassign(const rd_kafka_topic_partition_list_t* partitions);
  void close_streams(const rd_kafka_topic_partition_list_t* partitions);
  [[nodiscard]] bool cooperative() const;

  Client& client_;
  MembershipListener& listener_;
  Intake intake_;
  bool manual_;
  bool not_closing_ = false;  ///< close() was refused
  QueueHandle queue_;
  ListHandle revocation_;  ///< handed to the listener, not yet unassigned
  std::map<TopicPartition, std::shared_ptr<PartitionStream>> streams_;  ///< of what is assigned
};

}  // namespace pawl::kafka
