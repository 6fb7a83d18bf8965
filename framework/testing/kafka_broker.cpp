#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <pawl/testing/kafka_broker.hpp>
#include <pawl/testing/wait.hpp>
#include <stdexcept>

#include "testing/kafka_handles.hpp"

namespace pawl::testing {

namespace {

constexpr std::chrono::seconds kChangeDeadline{20};

/// What a controller answers for one replica while its only broker is fenced: that one had no time
/// for its heartbeats, and is unfenced with the next of them.
constexpr auto kFenced = RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR;

pid_t pid_of(const std::filesystem::path& service) {
  pid_t pid = 0;
  std::ifstream file(service / "service.pid");
  if (!(file >> pid))
    throw std::runtime_error{"the broker is not running"};
  return pid;
}

/// By proc(5): the state stands behind the name, which is in parentheses.
bool all_threads_stopped(pid_t pid) {
  std::error_code ended;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), ended)) {
    std::ifstream file(thread.path() / "stat");
    const std::string stat((std::istreambuf_iterator<char>(file)), {});
    const auto name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.substr(name_end + 2, 1) != "T")
      return false;
  }
  return true;
}

void require_topic_results(const rd_kafka_topic_result_t* const* results, std::size_t count,
                           const std::string& what) {
  for (std::size_t i = 0; i < count; ++i) {
    require(rd_kafka_topic_result_error(results[i]), what,
            rd_kafka_topic_result_error_string(results[i]));
  }
}

void require_partitions(const rd_kafka_topic_partition_list_t* list, const std::string& what) {
  for (int i = 0; i < list->cnt; ++i) {
    require(list->elems[i].err, what);
  }
}

/// A coordinator that is still being elected or loaded, as after a group's first request.
bool coordinator_settles(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
         error == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
         error == RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
}

/// What a group's coordinator refused: the group, or the first of its partitions that was.
rd_kafka_resp_err_t refusal(const rd_kafka_group_result_t* group) {
  if (const auto* error = rd_kafka_group_result_error(group); error != nullptr) {
    return rd_kafka_error_code(error);
  }
  const auto* partitions = rd_kafka_group_result_partitions(group);
  for (int i = 0; partitions != nullptr && i < partitions->cnt; ++i) {
    if (partitions->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return partitions->elems[i].err;
    }
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// Asks again while the group's coordinator settles. `ask` returns what was refused.
template <typename Ask>
void ask_coordinator(const std::string& what, Ask ask) {
  auto error = RD_KAFKA_RESP_ERR_NO_ERROR;
  wait_until(
      [&] {
        error = ask();
        return !coordinator_settles(error);
      },
      kChangeDeadline, what + ": the group's coordinator");
  require(error, what);
}

/// What the broker says of one topic; the event owns the description.
struct Described {
  EventHandle event;
  const rd_kafka_TopicDescription_t* topic = nullptr;

  rd_kafka_resp_err_t error() const {
    return rd_kafka_error_code(rd_kafka_TopicDescription_error(topic));
  }
  /// Partitions with a leader.
  int partitions() const {
    std::size_t count = 0;
    const auto* const* partitions = rd_kafka_TopicDescription_partitions(topic, &count);
    int led = 0;
    for (std::size_t i = 0; i < count; ++i) {
      led += rd_kafka_TopicPartitionInfo_leader(partitions[i]) != nullptr ? 1 : 0;
    }
    return led;
  }
};

}  // namespace

/// The Admin API requests, each waited for. librdkafka's handle may be used from any thread.
class KafkaBroker::Client {
 public:
  // A consumer, although it never joins its group: librdkafka 2.14 crashes without one when a
  // coordinator moves while a group's offsets are listed (rd_kafka_handle_OffsetFetch sends the
  // query for the new coordinator to the client's own group). And read_uncommitted, or it would
  // answer the stable end where the high watermark is asked for.
  explicit Client(const std::string& bootstrap)
      : client_{make_client(RD_KAFKA_CONSUMER, bootstrap,
                            {{"group.id", "pawl-testing-requests"},
                             {"enable.auto.commit", "false"},
                             {"isolation.level", "read_uncommitted"}})} {}

  rd_kafka_t* get() const { return client_.get(); }

  Described describe(const std::string& topic) {
    const char* names[] = {topic.c_str()};
    const TopicCollectionHandle collection{rd_kafka_TopicCollection_of_topic_names(names, 1)};
    Described described;
    described.event =
        admin_request(get(), RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, "describing topic " + topic,
                      [&](auto* options, auto* queue) {
                        rd_kafka_DescribeTopics(get(), collection.get(), options, queue);
                      });
    std::size_t count = 0;
    described.topic = rd_kafka_DescribeTopics_result_topics(
        rd_kafka_event_DescribeTopics_result(described.event.get()), &count)[0];
    return described;
  }

  void wait_for_partitions(const std::string& topic, int partitions) {
    wait_until([&] { return describe(topic).partitions() == partitions; }, kChangeDeadline,
               fmt::format("{} partitions with a leader of topic {}", partitions, topic));
  }

 private:
  KafkaHandle client_;
};

KafkaBroker::KafkaBroker(KafkaOptions options) : options_{std::move(options)}, folder_{"kafka"} {
  std::vector<std::string> arguments;
  for (const auto& setting : options_.settings) {
    arguments.insert(arguments.end(), {"--conf", setting});
  }
  for (const auto& [name, protocol] : options_.listeners) {
    arguments.insert(arguments.end(), {"--listener", name + "=" + protocol});
  }
  service("start", arguments);
  found();
}

KafkaBroker::~KafkaBroker() {
  client_.reset();
  try {
    kill();
  } catch (const std::exception& error) {
    fmt::print(stderr, "pawl::testing: a Kafka broker in {} was not stopped: {}\n",
               folder_.path().string(), error.what());
  }
}

KafkaBroker& KafkaBroker::shared() {
  static KafkaBroker broker;
  return broker;
}

KafkaBroker::Client& KafkaBroker::client() {
  return *client_;
}

void KafkaBroker::service(const std::string& command, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"kafka", command, folder_.path().string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  run_script(options_.scripts / "services", arguments);
}

std::string KafkaBroker::bootstrap(const std::string& listener) const {
  return run_script(options_.scripts / "services",
                    {"kafka", "bootstrap", folder_.path().string(), "--listener", listener});
}

void KafkaBroker::stop() {
  if (running_) {
    service("stop");
    running_ = false;
  }
}

void KafkaBroker::kill() {
  if (running_) {
    service("stop", {"--kill"});
    running_ = false;
  }
}

// A signal stops a process when its threads next run; until then they answer.
void KafkaBroker::freeze() {
  signal(SIGSTOP);
  wait_until([&] { return all_threads_stopped(pid_of(folder())); }, kChangeDeadline,
             "the broker's threads to be stopped");
}

void KafkaBroker::thaw() {
  signal(SIGCONT);
}

void KafkaBroker::signal(int number) {
  if (::kill(pid_of(folder()), number) != 0)
    throw std::runtime_error{"the broker is not running"};
}

void KafkaBroker::start() {
  if (!running_) {
    service("start");
    running_ = true;
  }
}

void KafkaBroker::restart() {
  stop();
  start();
}

void KafkaBroker::move_to(std::uint16_t port) {
  kill();
  service("start", {"--port", std::to_string(port)});
  found();
}

/// It runs, wherever it has been started.
void KafkaBroker::found() {
  running_ = true;
  bootstrap_ =
      run_script(options_.scripts / "services", {"kafka", "bootstrap", folder_.path().string()});
  client_ = std::make_unique<Client>(bootstrap_);
}

std::filesystem::path KafkaBroker::log(const std::string& topic, int partition) const {
  return folder() / "data" / fmt::format("{}-{}", topic, partition);
}

std::filesystem::path KafkaBroker::saved_log(const std::string& topic, int partition) const {
  return folder() / "saved" / fmt::format("{}-{}", topic, partition);
}

void KafkaBroker::save_log(const std::string& topic, int partition) {
  const auto saved = saved_log(topic, partition);
  std::filesystem::remove_all(saved);
  std::filesystem::create_directories(saved.parent_path());
  std::filesystem::copy(log(topic, partition), saved, std::filesystem::copy_options::recursive);
}

void KafkaBroker::restore_log(const std::string& topic, int partition) {
  std::filesystem::remove_all(log(topic, partition));
  std::filesystem::copy(saved_log(topic, partition), log(topic, partition),
                        std::filesystem::copy_options::recursive);
}

void KafkaBroker::create_topic(const std::string& topic, int partitions, const Config& config) {
  const std::string what = "creating topic " + topic;
  std::array<char, 256> reason{};
  const Handle<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy> request{
      rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, reason.data(), reason.size())};
  if (!request) {
    throw std::runtime_error{what + ": " + reason.data() + ". Fix the arguments"};
  }
  for (const auto& [name, value] : config) {
    require(rd_kafka_NewTopic_set_config(request.get(), name.c_str(), value.c_str()), what);
  }
  rd_kafka_NewTopic_t* requests[] = {request.get()};
  EventHandle event;
  const rd_kafka_topic_result_t* const* results = nullptr;
  std::size_t count = 0;
  wait_until(
      [&] {
        event = admin_request(client().get(), RD_KAFKA_ADMIN_OP_CREATETOPICS, what,
                              [&](auto* options, auto* queue) {
                                rd_kafka_CreateTopics(client().get(), requests, 1, options, queue);
                              });
        results = rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(event.get()), &count);
        return rd_kafka_topic_result_error(results[0]) != kFenced;
      },
      kChangeDeadline,
      what + ": the broker to be unfenced; its log is " + (folder() / "service.log").string());
  require_topic_results(results, count, what);
  client().wait_for_partitions(topic, partitions);
}

std::string KafkaBroker::new_topic(const std::string& prefix, int partitions,
                                   const Config& config) {
  std::string topic = fmt::format("{}-{}-{}", prefix, getpid(), ++topics_);
  create_topic(topic, partitions, config);
  return topic;
}

void KafkaBroker::delete_topic(const std::string& topic) {
  const std::string what = "deleting topic " + topic;
  const Handle<rd_kafka_DeleteTopic_t, rd_kafka_DeleteTopic_destroy> request{
      rd_kafka_DeleteTopic_new(topic.c_str())};
  rd_kafka_DeleteTopic_t* requests[] = {request.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_DELETETOPICS, what, [&](auto* options, auto* queue) {
        rd_kafka_DeleteTopics(client().get(), requests, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* const* results =
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()), &count);
  require_topic_results(results, count, what);
  wait_until(
      [&] { return client().describe(topic).error() == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART; },
      kChangeDeadline, "the end of topic " + topic);
}

void KafkaBroker::add_partitions(const std::string& topic, int total) {
  const std::string what = "adding partitions to topic " + topic;
  std::array<char, 256> reason{};
  const Handle<rd_kafka_NewPartitions_t, rd_kafka_NewPartitions_destroy> request{
      rd_kafka_NewPartitions_new(topic.c_str(), static_cast<std::size_t>(total), reason.data(),
                                 reason.size())};
  if (!request) {
    throw std::runtime_error{what + ": " + reason.data() + ". Fix the arguments"};
  }
  rd_kafka_NewPartitions_t* requests[] = {request.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, what, [&](auto* options, auto* queue) {
        rd_kafka_CreatePartitions(client().get(), requests, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* const* results = rd_kafka_CreatePartitions_result_topics(
      rd_kafka_event_CreatePartitions_result(event.get()), &count);
  require_topic_results(results, count, what);
  client().wait_for_partitions(topic, total);
}

void KafkaBroker::delete_records(const std::string& topic, int partition, std::int64_t before) {
  const std::string what = fmt::format("deleting records of {}[{}]", topic, partition);
  const auto offsets = kafka::new_list();
  rd_kafka_topic_partition_list_add(offsets.get(), topic.c_str(), partition)->offset =
      before < 0 ? RD_KAFKA_OFFSET_END : before;
  const Handle<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy> request{
      rd_kafka_DeleteRecords_new(offsets.get())};
  rd_kafka_DeleteRecords_t* requests[] = {request.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_DELETERECORDS, what, [&](auto* options, auto* queue) {
        rd_kafka_DeleteRecords(client().get(), requests, 1, options, queue);
      });
  const auto* result =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
  require_partitions(result, what);
}

void KafkaBroker::set_topic_config(const std::string& topic, const Config& config) {
  const std::string what = "setting the configuration of topic " + topic;
  const Handle<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy> request{
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str())};
  for (const auto& [name, value] : config) {
    require(ErrorHandle{rd_kafka_ConfigResource_add_incremental_config(
                request.get(), name.c_str(), RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET, value.c_str())},
            what);
  }
  rd_kafka_ConfigResource_t* requests[] = {request.get()};
  const EventHandle event =
      admin_request(client().get(), RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS, what,
                    [&](auto* options, auto* queue) {
                      rd_kafka_IncrementalAlterConfigs(client().get(), requests, 1, options, queue);
                    });
  std::size_t count = 0;
  const auto* const* results = rd_kafka_IncrementalAlterConfigs_result_resources(
      rd_kafka_event_IncrementalAlterConfigs_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    require(rd_kafka_ConfigResource_error(results[i]), what,
            rd_kafka_ConfigResource_error_string(results[i]));
  }
}

void KafkaBroker::add_acl(int resource, const std::string& name, bool prefix,
                          const std::string& principal, int operation, int permission) {
  const std::string what = "an ACL of " + name;
  std::array<char, 256> reason{};
  const Handle<rd_kafka_AclBinding_t, rd_kafka_AclBinding_destroy> denial{rd_kafka_AclBinding_new(
      static_cast<rd_kafka_ResourceType_t>(resource), name.c_str(),
      prefix ? RD_KAFKA_RESOURCE_PATTERN_PREFIXED : RD_KAFKA_RESOURCE_PATTERN_LITERAL,
      principal.c_str(), "*", static_cast<rd_kafka_AclOperation_t>(operation),
      static_cast<rd_kafka_AclPermissionType_t>(permission), reason.data(), reason.size())};
  if (!denial) {
    throw std::runtime_error{what + ": " + reason.data() + ". Fix the arguments"};
  }
  rd_kafka_AclBinding_t* denials[] = {denial.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_CREATEACLS, what, [&](auto* options, auto* queue) {
        rd_kafka_CreateAcls(client().get(), denials, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* const* results =
      rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto* error = rd_kafka_acl_result_error(results[i]); error != nullptr)
      require(rd_kafka_error_code(error), what, rd_kafka_error_string(error));
  }
}

void KafkaBroker::permit(const KafkaPermission& permission) {
  static const std::map<std::string, rd_kafka_ResourceType_t> kResources{
      {"topic", RD_KAFKA_RESOURCE_TOPIC},
      {"group", RD_KAFKA_RESOURCE_GROUP},
      {"transactional-id", RD_KAFKA_RESOURCE_TRANSACTIONAL_ID}};
  static const std::map<std::string, rd_kafka_AclOperation_t> kOperations{
      {"Read", RD_KAFKA_ACL_OPERATION_READ},
      {"Write", RD_KAFKA_ACL_OPERATION_WRITE},
      {"Create", RD_KAFKA_ACL_OPERATION_CREATE},
      {"Describe", RD_KAFKA_ACL_OPERATION_DESCRIBE}};
  add_acl(kResources.at(permission.resource), permission.name, permission.prefix,
          permission.principal, kOperations.at(permission.operation),
          RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW);
}

void KafkaBroker::set_password(const std::string& user, const std::string& password) {
  const std::string what = "setting the password of " + user;
  constexpr int kIterations = 4096;
  const Handle<rd_kafka_UserScramCredentialAlteration_t,
               rd_kafka_UserScramCredentialAlteration_destroy>
      request{rd_kafka_UserScramCredentialUpsertion_new(
          user.c_str(), RD_KAFKA_SCRAM_MECHANISM_SHA_512, kIterations,
          reinterpret_cast<const unsigned char*>(password.data()), password.size(), nullptr, 0)};
  rd_kafka_UserScramCredentialAlteration_t* requests[] = {request.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_ALTERUSERSCRAMCREDENTIALS, what,
      [&](auto* options, auto* queue) {
        rd_kafka_AlterUserScramCredentials(client().get(), requests, 1, options, queue);
      });
  std::size_t count = 0;
  const auto* const* results = rd_kafka_AlterUserScramCredentials_result_responses(
      rd_kafka_event_AlterUserScramCredentials_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto* error = rd_kafka_AlterUserScramCredentials_result_response_error(results[i]);
        error != nullptr)
      require(rd_kafka_error_code(error), what, rd_kafka_error_string(error));
  }
}

void KafkaBroker::deny_topic(const std::string& topic) {
  add_acl(RD_KAFKA_RESOURCE_TOPIC, topic, false, "User:*", RD_KAFKA_ACL_OPERATION_ALL,
          RD_KAFKA_ACL_PERMISSION_TYPE_DENY);
  wait_until(
      [&] {
        return client().describe(topic).error() == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
      },
      kChangeDeadline, "the denial of topic " + topic);
}

void KafkaBroker::allow_only_describing(const std::string& topic) {
  // What is not allowed is denied as soon as a topic has any.
  add_acl(RD_KAFKA_RESOURCE_TOPIC, topic, false, "User:*", RD_KAFKA_ACL_OPERATION_DESCRIBE,
          RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW);
}

void KafkaBroker::permit_topic(const std::string& topic) {
  const std::string what = "permitting topic " + topic;
  std::array<char, 256> reason{};
  const Handle<rd_kafka_AclBindingFilter_t, rd_kafka_AclBinding_destroy> denials{
      rd_kafka_AclBindingFilter_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str(),
                                    RD_KAFKA_RESOURCE_PATTERN_LITERAL, nullptr, nullptr,
                                    RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY,
                                    reason.data(), reason.size())};
  if (!denials) {
    throw std::runtime_error{what + ": " + reason.data() + ". Fix the arguments"};
  }
  rd_kafka_AclBindingFilter_t* filters[] = {denials.get()};
  const EventHandle event = admin_request(
      client().get(), RD_KAFKA_ADMIN_OP_DELETEACLS, what, [&](auto* options, auto* queue) {
        rd_kafka_DeleteAcls(client().get(), filters, 1, options, queue);
      });
  wait_until([&] { return client().describe(topic).error() == RD_KAFKA_RESP_ERR_NO_ERROR; },
             kChangeDeadline, "the permission for topic " + topic);
}

std::string KafkaBroker::topic_id(const std::string& topic) {
  const Described described = client().describe(topic);
  require(described.error(), "describing topic " + topic);
  return rd_kafka_Uuid_base64str(rd_kafka_TopicDescription_topic_id(described.topic));
}

int KafkaBroker::partition_count(const std::string& topic) {
  const Described described = client().describe(topic);
  require(described.error(), "describing topic " + topic);
  return described.partitions();
}

Watermarks KafkaBroker::watermarks(const std::string& topic, int partition) {
  Watermarks result;
  require(rd_kafka_query_watermark_offsets(client().get(), topic.c_str(), partition, &result.low,
                                           &result.high, 30'000),
          fmt::format("reading the watermarks of {}[{}]", topic, partition));
  return result;
}

std::int64_t KafkaBroker::last_stable_offset(const std::string& topic, int partition) {
  return end_offset(client().get(), topic, partition, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED);
}

std::map<int, CommittedOffset> KafkaBroker::committed_offsets(const std::string& group,
                                                              const std::string& topic) {
  const std::string what = fmt::format("reading the committed offsets of {}", group);
  const auto wanted = kafka::new_list();
  rd_kafka_topic_partition_list_add_range(wanted.get(), topic.c_str(), 0,
                                          partition_count(topic) - 1);
  const Handle<rd_kafka_ListConsumerGroupOffsets_t, rd_kafka_ListConsumerGroupOffsets_destroy>
      request{rd_kafka_ListConsumerGroupOffsets_new(group.c_str(), wanted.get())};
  rd_kafka_ListConsumerGroupOffsets_t* requests[] = {request.get()};
  std::map<int, CommittedOffset> result;
  ask_coordinator(what, [&] {
    const EventHandle event = admin_request(
        client().get(), RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, what,
        [&](auto* options, auto* queue) {
          rd_kafka_ListConsumerGroupOffsets(client().get(), requests, 1, options, queue);
        });
    std::size_t count = 0;
    const auto* answer = rd_kafka_ListConsumerGroupOffsets_result_groups(
        rd_kafka_event_ListConsumerGroupOffsets_result(event.get()), &count)[0];
    const auto refused = refusal(answer);
    if (refused == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND) {
      return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    const auto* partitions = rd_kafka_group_result_partitions(answer);
    for (int i = 0; refused == RD_KAFKA_RESP_ERR_NO_ERROR && i < partitions->cnt; ++i) {
      const auto& partition = partitions->elems[i];
      if (partition.offset >= 0) {
        result[partition.partition] = {
            partition.offset,
            std::string{static_cast<const char*>(partition.metadata), partition.metadata_size}};
      }
    }
    return refused;
  });
  return result;
}

void KafkaBroker::commit_offsets(const std::string& group, const std::string& topic,
                                 const std::map<int, std::int64_t>& offsets) {
  const std::string what = fmt::format("committing offsets of {}", group);
  const auto list = kafka::new_list();
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  }
  const Handle<rd_kafka_AlterConsumerGroupOffsets_t, rd_kafka_AlterConsumerGroupOffsets_destroy>
      request{rd_kafka_AlterConsumerGroupOffsets_new(group.c_str(), list.get())};
  rd_kafka_AlterConsumerGroupOffsets_t* requests[] = {request.get()};
  ask_coordinator(what, [&] {
    const EventHandle event = admin_request(
        client().get(), RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS, what,
        [&](auto* options, auto* queue) {
          rd_kafka_AlterConsumerGroupOffsets(client().get(), requests, 1, options, queue);
        });
    std::size_t count = 0;
    return refusal(rd_kafka_AlterConsumerGroupOffsets_result_groups(
        rd_kafka_event_AlterConsumerGroupOffsets_result(event.get()), &count)[0]);
  });
}

void KafkaBroker::delete_group(const std::string& group) {
  const std::string what = "deleting group " + group;
  const Handle<rd_kafka_DeleteGroup_t, rd_kafka_DeleteGroup_destroy> request{
      rd_kafka_DeleteGroup_new(group.c_str())};
  rd_kafka_DeleteGroup_t* requests[] = {request.get()};
  ask_coordinator(what, [&] {
    const EventHandle event = admin_request(
        client().get(), RD_KAFKA_ADMIN_OP_DELETEGROUPS, what, [&](auto* options, auto* queue) {
          rd_kafka_DeleteGroups(client().get(), requests, 1, options, queue);
        });
    std::size_t count = 0;
    return refusal(rd_kafka_DeleteGroups_result_groups(
        rd_kafka_event_DeleteGroups_result(event.get()), &count)[0]);
  });
}

void KafkaBroker::wait_for_committed(const std::string& group, const std::string& topic,
                                     int partition, std::int64_t offset,
                                     std::chrono::milliseconds deadline) {
  wait_until(
      [&] {
        const auto committed = committed_offsets(group, topic);
        const auto found = committed.find(partition);
        return found != committed.end() && found->second.offset >= offset;
      },
      deadline, fmt::format("group {} to commit {} for {}[{}]", group, offset, topic, partition));
}

int KafkaBroker::stable_members(const std::string& group) {
  const char* groups[] = {group.c_str()};
  const EventHandle event =
      admin_request(client().get(), RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS,
                    "describing group " + group, [&](auto* options, auto* queue) {
                      rd_kafka_DescribeConsumerGroups(client().get(), groups, 1, options, queue);
                    });
  std::size_t count = 0;
  const auto* const* described = rd_kafka_DescribeConsumerGroups_result_groups(
      rd_kafka_event_DescribeConsumerGroups_result(event.get()), &count);
  if (rd_kafka_ConsumerGroupDescription_state(described[0]) !=
      RD_KAFKA_CONSUMER_GROUP_STATE_STABLE) {
    return 0;
  }
  return static_cast<int>(rd_kafka_ConsumerGroupDescription_member_count(described[0]));
}

}  // namespace pawl::testing
