#pragma once

// Recreates a topic, as an operator might by mistake. Its ID changes, and its offsets start at 0.
//
//   #include <pawl/testing/kafka_broker.hpp>
//
//   bool recreate(pawl::testing::KafkaBroker& kafka, const std::string& topic) {
//     const std::string id = kafka.topic_id(topic);
//     const int partitions = kafka.partition_count(topic);
//     kafka.delete_topic(topic);
//     kafka.create_topic(topic, partitions, {{"cleanup.policy", "compact"}});
//     return kafka.topic_id(topic) != id && kafka.watermarks(topic, 0).high == 0;
//   }

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pawl/testing/scripts.hpp>
#include <pawl/testing/temp_dir.hpp>

namespace pawl::testing {

/// How a broker is started.
struct KafkaOptions {
  /// Settings for server.properties, "name=value".
  std::vector<std::string> settings = {};
  /// Further listeners next to PLAINTEXT: name and protocol, such as {"SCRAM", "SASL_SSL"}. Each
  /// has a port of its own. `settings` configure it ("listener.name.scram....").
  std::map<std::string, std::string> listeners = {};
  /// The folder of pawl's scripts.
  std::filesystem::path scripts = scripts_folder();
};

/// One operation that a principal may perform, in the terms of kafka-acls.
struct KafkaPermission {
  std::string principal;  ///< "User:payments"
  std::string resource;   ///< "topic", "group", or "transactional-id"
  std::string name;       ///< of the resource
  /// The permission is for all resources whose names start with `name`.
  bool prefix = false;
  std::string operation;  ///< "Read", "Write", "Describe", "Create", ...
};

/// The offset that a group has committed for a partition.
struct CommittedOffset {
  std::int64_t offset = 0;  ///< of the next message to read
  std::string metadata;     ///< the text that the consumer committed with it
};

/// The ends of the log of a partition.
struct Watermarks {
  std::int64_t low = 0;   ///< the first offset that the log still has (log start offset)
  std::int64_t high = 0;  ///< the offset after the last record (high watermark)
};

/// A real Kafka broker (one node, KRaft) with its data in a temporary folder, on a port of its own.
/// `scripts/services` runs it. The destructor stops the broker and removes its folder. Methods that
/// start or stop the broker return when that is done, and throw as run_script().
///
/// Any thread may call the methods about topics, offsets, groups, and permissions. They wait until
/// the broker reports the change, at most 20 s per step. They throw std::runtime_error with the
/// broker's reason, or Timeout.
class KafkaBroker {
 public:
  using Config = std::map<std::string, std::string>;

  /// Starts a broker without topics.
  explicit KafkaBroker(KafkaOptions options = {});
  ~KafkaBroker();
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;

  /// The broker that all tests of a program share. It starts at the first call, and stops at exit.
  static KafkaBroker& shared();

  /// "127.0.0.1:PORT" of the PLAINTEXT listener. Only move_to() changes it.
  const std::string& bootstrap() const { return bootstrap_; }
  /// The same of a listener of KafkaOptions::listeners.
  std::string bootstrap(const std::string& listener) const;
  /// The folder with its data, service.log, and service.pid.
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Stops the broker, which first flushes its logs (SIGTERM).
  void stop();
  /// Crashes the broker (SIGKILL).
  void kill();
  /// Starts the broker with the same port and data.
  void start();
  /// stop(), then start().
  void restart();
  /// Crashes the broker, and starts it with its data on this port. No process listens on the old
  /// one.
  void move_to(std::uint16_t port);
  /// Stops all threads of a running broker (SIGSTOP). It keeps its connections, but does not
  /// respond.
  void freeze();
  /// Continues a frozen broker (SIGCONT).
  void thaw();

  /// Creates a topic with one replica per partition. `config`: of the topic, by name.
  void create_topic(const std::string& topic, int partitions, const Config& config = {});
  /// Creates a topic, and returns its name, which starts with `prefix` and is new on this broker.
  std::string new_topic(const std::string& prefix, int partitions, const Config& config = {});
  /// Deletes a topic with its records.
  void delete_topic(const std::string& topic);
  /// Increases the number of partitions to `total`.
  void add_partitions(const std::string& topic, int total);
  /// Deletes the records with offsets less than `before`. -1: all records.
  void delete_records(const std::string& topic, int partition, std::int64_t before);
  /// Changes the configuration of a topic. Other values stay.
  void set_topic_config(const std::string& topic, const Config& config);

  /// Copies the log of a partition. The broker must be stopped. Throws
  /// std::filesystem::filesystem_error, as does restore_log().
  void save_log(const std::string& topic, int partition);
  /// Restores the copy: the log loses all later records. The broker must be stopped.
  void restore_log(const std::string& topic, int partition);

  /// Denies all operations on the topic for all users. Requires an authorizer that allows all other
  /// operations (settings "authorizer.class.name" and "allow.everyone.if.no.acl.found").
  void deny_topic(const std::string& topic);
  /// Allows all users only to describe the topic. The broker may accept other requests for a short
  /// time after it returns.
  void allow_only_describing(const std::string& topic);
  /// Removes all rules for the exact name of the topic, as of deny_topic(). Returns when the topic
  /// can be described.
  void permit_topic(const std::string& topic);

  /// Adds a permission. Requires an authorizer. The broker may reject requests for a short time
  /// after it returns.
  void permit(const KafkaPermission& permission);
  /// Creates a user for SCRAM-SHA-512, or changes its password.
  void set_password(const std::string& user, const std::string& password);

  /// The ID of a topic (KIP-516) in base64. A recreated topic has another ID.
  std::string topic_id(const std::string& topic);
  /// The number of partitions that have a leader.
  int partition_count(const std::string& topic);
  Watermarks watermarks(const std::string& topic, int partition);
  /// The end of the log for read_committed consumers: the first offset of the oldest open
  /// transaction, or the high watermark.
  std::int64_t last_stable_offset(const std::string& topic, int partition);

  /// The committed offsets of a group, by partition. Partitions without one are omitted.
  std::map<int, CommittedOffset> committed_offsets(const std::string& group,
                                                   const std::string& topic);
  /// Commits offsets for a group that has no members, as another consumer would have.
  void commit_offsets(const std::string& group, const std::string& topic,
                      const std::map<int, std::int64_t>& offsets);
  /// Deletes the committed offsets of a group that has no members, as the broker does after
  /// `offsets.retention.minutes`.
  void delete_group(const std::string& group);
  /// Waits until the group has committed at least this offset for the partition. Throws Timeout
  /// after `deadline`.
  void wait_for_committed(const std::string& group, const std::string& topic, int partition,
                          std::int64_t offset, std::chrono::milliseconds deadline);
  /// The number of members of a classic group (not KIP-848). 0: the group rebalances.
  int stable_members(const std::string& group);

 private:
  class Client;

  std::filesystem::path log(const std::string& topic, int partition) const;
  std::filesystem::path saved_log(const std::string& topic, int partition) const;
  void signal(int number);
  void found();
  void service(const std::string& command, const std::vector<std::string>& more = {});
  Client& client();
  /// Of rd_kafka_ResourceType_t, rd_kafka_AclOperation_t and rd_kafka_AclPermissionType_t.
  void add_acl(int resource, const std::string& name, bool prefix, const std::string& principal,
               int operation, int permission);

  KafkaOptions options_;
  TempDir folder_;
  std::string bootstrap_;
  bool running_ = false;
  std::atomic<int> topics_ = 0;
  std::unique_ptr<Client> client_;
};

}  // namespace pawl::testing
