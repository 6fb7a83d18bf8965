#pragma once

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

struct KafkaOptions {
  /// Lines for server.properties, "name=value".
  std::vector<std::string> settings = {};
  /// Beside PLAINTEXT, by name the protocol: {"SCRAM", "SASL_SSL"}. Each has a port of its own, and
  /// is configured by settings "listener.name.scram....".
  std::map<std::string, std::string> listeners = {};
  std::filesystem::path scripts = scripts_folder();
};

/// One thing that a principal may do, in the words of kafka-acls.
struct KafkaPermission {
  std::string principal;  ///< "User:payments"
  std::string resource;   ///< "topic", "group" or "transactional-id"
  std::string name;
  /// Also of all resources whose name begins so.
  bool prefix = false;
  std::string operation;  ///< "Read", "Write", "Describe", "Create", ...
};

/// What a group has committed for a partition, with the metadata text beside it.
struct CommittedOffset {
  std::int64_t offset = 0;  ///< of the next message to read, as Kafka counts
  std::string metadata;
};

/// The first offset that a partition still has, and the one after its last (the high watermark).
struct Watermarks {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// A real Kafka broker (one node, KRaft) with its data in a temporary folder, on a port of its own,
/// run by `scripts/services`. Stopped, and its folder removed, when the object goes. The methods
/// about topics, offsets and groups may be called from any thread; they wait until the broker shows
/// the change, and throw std::runtime_error with its reason, or Timeout.
class KafkaBroker {
 public:
  using Config = std::map<std::string, std::string>;

  explicit KafkaBroker(KafkaOptions options = {});
  ~KafkaBroker();
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;

  /// The broker that all tests of a program share: started at the first call, stopped at exit.
  static KafkaBroker& shared();

  /// "127.0.0.1:PORT"; the same until move_to().
  const std::string& bootstrap() const { return bootstrap_; }
  /// The same of one of KafkaOptions::listeners.
  std::string bootstrap(const std::string& listener) const;
  const std::filesystem::path& folder() const { return folder_.path(); }

  void stop();
  /// SIGKILL.
  void kill();
  void start();
  void restart();
  /// SIGKILL, and a restart with its data on this port. Connections to its old address are refused.
  void move_to(std::uint16_t port);
  /// SIGSTOP to a running broker, and SIGCONT: it keeps its connections, but does not respond.
  void freeze();
  void thaw();

  void create_topic(const std::string& topic, int partitions, const Config& config = {});
  /// Creates a topic whose name begins with the prefix and is new on this broker; returns it.
  std::string new_topic(const std::string& prefix, int partitions, const Config& config = {});
  void delete_topic(const std::string& topic);
  /// Raises the number of partitions to `total`.
  void add_partitions(const std::string& topic, int total);
  /// Removes the messages below `before`; -1: all that there are.
  void delete_records(const std::string& topic, int partition, std::int64_t before);
  void set_topic_config(const std::string& topic, const Config& config);

  /// For a stopped broker. Saves a copy of a partition's log.
  void save_log(const std::string& topic, int partition);
  /// For a stopped broker. Restores the saved copy: the log loses all later records.
  void restore_log(const std::string& topic, int partition);

  /// Denies all operations on the topic for all users. Requires a broker with an authorizer that
  /// allows all others (settings "authorizer.class.name", "allow.everyone.if.no.acl.found").
  void deny_topic(const std::string& topic);
  /// Allows all users only to describe the topic. It returns before the broker rejects every other
  /// request.
  void allow_only_describing(const std::string& topic);
  void permit_topic(const std::string& topic);

  /// For a broker with an authorizer; returns before every request is permitted.
  void permit(const KafkaPermission& permission);
  /// Creates or changes a user for SCRAM-SHA-512.
  void set_password(const std::string& user, const std::string& password);

  /// KIP-516, as base64. A topic that was deleted and created again has another one.
  std::string topic_id(const std::string& topic);
  int partition_count(const std::string& topic);
  Watermarks watermarks(const std::string& topic, int partition);
  /// The end for read_committed consumers: the first offset of the oldest open transaction.
  std::int64_t last_stable_offset(const std::string& topic, int partition);

  /// Partitions of the topic for which the group has committed something.
  std::map<int, CommittedOffset> committed_offsets(const std::string& group,
                                                   const std::string& topic);
  /// Commits for a group without members, as another consumer would have.
  void commit_offsets(const std::string& group, const std::string& topic,
                      const std::map<int, std::int64_t>& offsets);
  /// Removes the committed offsets of a group without members, as the broker does automatically
  /// after offsets.retention.minutes.
  void delete_group(const std::string& group);
  /// Waits until the group has committed at least this offset for the partition.
  void wait_for_committed(const std::string& group, const std::string& topic, int partition,
                          std::int64_t offset, std::chrono::milliseconds deadline);
  /// Members of a classic (not KIP-848) group that is stable; 0 while it rebalances.
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
