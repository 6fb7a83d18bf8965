// The questions of kafka/client.hpp, answered through librdkafka's admin API.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "kafka/answers.hpp"
#include "kafka/client.hpp"
#include "kafka/refusals.hpp"
#include "message/partition_name.hpp"

namespace pawl::kafka {
namespace {

constexpr auto kStable = RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED;

int to_int(std::chrono::milliseconds timeout) {
  return static_cast<int>(timeout.count());
}

AdminOptionsHandle admin_options(rd_kafka_t* client, rd_kafka_admin_op_t operation,
                                 std::chrono::milliseconds timeout) {
  AdminOptionsHandle options(rd_kafka_AdminOptions_new(client, operation));
  char error[256];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), to_int(timeout), error, sizeof error);
  return options;
}

EventHandle wait_for(rd_kafka_queue_t* queue, std::chrono::milliseconds timeout, const char* what) {
  // librdkafka answers by itself when the request times out; the margin is for its threads.
  EventHandle event(rd_kafka_queue_poll(queue, to_int(timeout) + 1000));
  if (!event)
    throw KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, fmt::format("{}: no response", what));
  if (const auto code = rd_kafka_event_error(event.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw KafkaError(code, fmt::format("{}: {}", what, rd_kafka_event_error_string(event.get())));
  }
  return event;
}

/// As rd_kafka_committed(). A broker that has just become the group's coordinator, or no longer is
/// it, says so for a moment; so does one whose group has a transaction that has not ended
/// (KIP-447).
rd_kafka_resp_err_t read_committed(rd_kafka_t* client, rd_kafka_topic_partition_list_t* list,
                                   std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{50};
  const auto deadline = Clock::now() + timeout;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto code = rd_kafka_committed(client, list, std::max(to_int(left), 1));
    const bool passes = code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
                        code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
                        code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS ||
                        code == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT;
    if (!passes || Clock::now() + kPause >= deadline)
      return code;
    std::this_thread::sleep_for(kPause);
  }
}

ListHandle to_list(const std::vector<TopicPartition>& partitions) {
  auto list = new_list(static_cast<int>(partitions.size()));
  for (const auto& p : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), p.topic.c_str(), p.partition);
  }
  return list;
}

bool allows_writing(const rd_kafka_TopicDescription_t* topic) {
  std::size_t count = 0;
  const auto* operations = rd_kafka_TopicDescription_authorized_operations(topic, &count);
  // A broker that is too old names none.
  return count == 0 || std::find(operations, operations + count, RD_KAFKA_ACL_OPERATION_WRITE) !=
                           operations + count;
}

std::set<std::int32_t> leaderless(const rd_kafka_TopicPartitionInfo_t** infos, std::size_t count) {
  std::set<std::int32_t> partitions;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* leader = rd_kafka_TopicPartitionInfo_leader(infos[i]);
    if (leader == nullptr || rd_kafka_Node_id(leader) < 0)
      partitions.insert(rd_kafka_TopicPartitionInfo_partition(infos[i]));
  }
  return partitions;
}

}  // namespace

void Client::require_usable(std::chrono::milliseconds timeout) const {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  // So long librdkafka may take to try the second address of a server ("localhost").
  constexpr milliseconds kLastChance{1000};
  const QueueHandle events(rd_kafka_queue_get_consumer(client_));
  Refusals refusals(bootstrap_.servers());
  auto until = Clock::now() + timeout;
  bool unlikely = false;
  // Longer and longer: a broker that is far away needs its time for an answer.
  for (milliseconds slice{50};; slice *= 2) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    const rd_kafka_metadata_t* metadata = nullptr;
    const auto code = rd_kafka_metadata(client_, 0, nullptr, &metadata,
                                        std::max(to_int(std::min(slice, left)), 1));
    rd_kafka_metadata_destroy(metadata);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
      return;
    // Whoever only relays is in no group, and has no such queue.
    while (const EventHandle event{events ? rd_kafka_queue_poll(events.get(), 0) : nullptr}) {
      if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR)
        refusals.note(rd_kafka_event_error(event.get()), rd_kafka_event_error_string(event.get()));
    }
    const auto verdict = refusals.verdict();
    if (verdict == Refusals::Verdict::kUnlikely && !unlikely) {
      unlikely = true;
      until = std::min(until, Clock::now() + kLastChance);
    }
    if (verdict == Refusals::Verdict::kFinal || Clock::now() >= until) {
      throw KafkaError(
          code,
          "no Kafka broker is usable. Check kafka.bootstrap_servers and the network" + cause());
    }
  }
}

std::string Client::cluster_id(std::chrono::milliseconds timeout) const {
  // It is in any answer, and librdkafka (2.14.2) asks for none by itself: where rd_kafka_clusterid
  // has nothing yet it waits for a refresh that comes after a second.
  require_broker(timeout);
  char* id = rd_kafka_clusterid(client_, to_int(timeout));
  if (id == nullptr) {
    throw KafkaError(
        RD_KAFKA_RESP_ERR__TIMED_OUT,
        "Kafka returned no cluster ID. pawl requires brokers of version 0.10.1 or later" + cause());
  }
  std::string result(id);
  rd_kafka_mem_free(client_, id);
  return result;
}

MetadataHandle Client::metadata(bool topics, std::chrono::milliseconds timeout) const {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(client_, topics ? 1 : 0, nullptr, &answer, to_int(timeout));
  MetadataHandle metadata(answer);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    bootstrap_.name_again(client_);
    throw KafkaError(
        code, fmt::format("no Kafka broker responded ({}). Check kafka.bootstrap_servers and the "
                          "network{}",
                          rd_kafka_err2str(code), cause()));
  }
  return metadata;
}

void Client::require_broker(std::chrono::milliseconds timeout) const {
  static_cast<void>(metadata(false, timeout));
}

std::vector<std::string> Client::topic_names(std::chrono::milliseconds timeout) const {
  const auto answer = metadata(true, timeout);
  std::vector<std::string> names;
  for (int i = 0; i < answer->topic_cnt; ++i) {
    const auto& topic = answer->topics[i];
    // It is there, and will have a leader.
    if (topic.err == RD_KAFKA_RESP_ERR_NO_ERROR ||
        topic.err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
      names.emplace_back(topic.topic);
  }
  return names;
}

std::map<std::string, TopicDescription> Client::describe(const std::vector<std::string>& topics,
                                                         std::chrono::milliseconds timeout) const {
  auto answers = describe_each(topics, timeout);
  if (!answers.refused.empty())
    throw KafkaError(answers.refused.begin()->second);
  return std::move(answers.described);
}

TopicAnswers Client::describe_each(const std::vector<std::string>& topics,
                                   std::chrono::milliseconds timeout, bool rights) const {
  TopicAnswers answers;
  if (topics.empty())
    return answers;
  require_broker(timeout);
  std::vector<const char*> names;
  for (const auto& topic : topics)
    names.push_back(topic.c_str());
  const TopicCollectionHandle collection(
      rd_kafka_TopicCollection_of_topic_names(names.data(), names.size()));
  const auto options = admin_options(client_, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, timeout);
  if (rights) {
    if (const ErrorHandle error{
            rd_kafka_AdminOptions_set_include_authorized_operations(options.get(), 1)})
      throw KafkaError(rd_kafka_error_code(error.get()), rd_kafka_error_string(error.get()));
  }
  const QueueHandle queue(rd_kafka_queue_new(client_));
  rd_kafka_DescribeTopics(client_, collection.get(), options.get(), queue.get());
  const auto event = wait_for(queue.get(), timeout, "describing topics");

  std::size_t count = 0;
  const auto* result = rd_kafka_event_DescribeTopics_result(event.get());
  const auto** descriptions = rd_kafka_DescribeTopics_result_topics(result, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* error = rd_kafka_TopicDescription_error(descriptions[i]);
    const auto code = rd_kafka_error_code(error);
    if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) {
      continue;
    }
    const std::string name = rd_kafka_TopicDescription_name(descriptions[i]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      answers.refused.emplace(name, KafkaError(code, fmt::format("describing topic {}: {}", name,
                                                                 rd_kafka_error_string(error))));
      continue;
    }
    std::size_t partitions = 0;
    const auto** infos = rd_kafka_TopicDescription_partitions(descriptions[i], &partitions);
    const auto* uuid = rd_kafka_TopicDescription_topic_id(descriptions[i]);
    const bool has_id = uuid != nullptr && (rd_kafka_Uuid_most_significant_bits(uuid) != 0 ||
                                            rd_kafka_Uuid_least_significant_bits(uuid) != 0);
    const bool internal = rd_kafka_TopicDescription_is_internal(descriptions[i]) != 0;
    answers.described[name] = {has_id ? rd_kafka_Uuid_base64str(uuid) : "",
                               static_cast<std::int32_t>(partitions),
                               !rights || (!internal && allows_writing(descriptions[i])), internal,
                               leaderless(infos, partitions)};
  }
  return answers;
}

std::map<TopicPartition, std::int64_t> Client::list_offsets(
    const std::vector<TopicPartition>& partitions, std::int64_t spec,
    rd_kafka_IsolationLevel_t isolation, std::chrono::milliseconds timeout) const {
  if (partitions.empty())
    return {};
  require_broker(timeout);
  return list_more_offsets(partitions, spec, isolation, timeout);
}

std::map<TopicPartition, std::int64_t> Client::list_more_offsets(
    const std::vector<TopicPartition>& partitions, std::int64_t spec,
    rd_kafka_IsolationLevel_t isolation, std::chrono::milliseconds timeout) const {
  std::map<TopicPartition, std::int64_t> offsets;
  if (partitions.empty())
    return offsets;
  const auto list = to_list(partitions);
  for (int i = 0; i < list->cnt; ++i)
    list->elems[i].offset = spec;

  const auto options = admin_options(client_, RD_KAFKA_ADMIN_OP_LISTOFFSETS, timeout);
  if (const ErrorHandle error{
          rd_kafka_AdminOptions_set_isolation_level(options.get(), isolation)}) {
    throw KafkaError(rd_kafka_error_code(error.get()), rd_kafka_error_string(error.get()));
  }
  const QueueHandle queue(rd_kafka_queue_new(client_));
  rd_kafka_ListOffsets(client_, list.get(), options.get(), queue.get());
  const auto event = wait_for(queue.get(), timeout, "listing offsets");

  std::size_t count = 0;
  const auto** infos =
      rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* answer = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[i]);
    // One deleted topic must not hide the others' answers.
    if (answer->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      continue;
    // -1: Kafka has no offset for that time. Below it are librdkafka's own marks, such as "invalid"
    // (-1001) of a partition that the broker did not answer for: no offsets, whatever the error
    // says.
    if (answer->offset < -1 || (answer->offset < 0 && spec < 0))
      continue;
    offsets[{answer->topic, answer->partition}] = answer->offset;
  }
  return offsets;
}

std::map<TopicPartition, LogRange> Client::log_ranges(const std::vector<TopicPartition>& partitions,
                                                      std::chrono::milliseconds timeout) const {
  const auto starts = list_offsets(partitions, RD_KAFKA_OFFSET_SPEC_EARLIEST, kStable, timeout);
  const auto ends = list_more_offsets(partitions, RD_KAFKA_OFFSET_SPEC_LATEST, kStable, timeout);
  std::map<TopicPartition, LogRange> ranges;
  for (const auto& [partition, start] : starts) {
    const auto end = ends.find(partition);
    if (end != ends.end())
      ranges[partition] = {start, end->second};
  }
  return ranges;
}

std::int64_t Client::high_watermark(const TopicPartition& partition,
                                    std::chrono::milliseconds timeout) const {
  const auto ends = high_watermarks({partition}, timeout);
  if (!ends.empty())
    return ends.begin()->second;
  throw KafkaError(RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
                   fmt::format("Kafka returned no end offset of {}", message::name_of(partition)));
}

std::map<TopicPartition, std::int64_t> Client::high_watermarks(
    const std::vector<TopicPartition>& partitions, std::chrono::milliseconds timeout) const {
  return list_offsets(partitions, RD_KAFKA_OFFSET_SPEC_LATEST,
                      RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED, timeout);
}

std::map<TopicPartition, std::int64_t> Client::offsets_at(
    const std::vector<TopicPartition>& partitions, Timestamp time,
    std::chrono::milliseconds timeout) const {
  auto offsets = list_offsets(partitions, time.time_since_epoch().count(), kStable, timeout);
  std::vector<TopicPartition> beyond;
  for (const auto& [partition, offset] : offsets) {
    if (offset < 0)
      beyond.push_back(partition);
  }
  return or_ends(std::move(offsets),
                 list_more_offsets(beyond, RD_KAFKA_OFFSET_SPEC_LATEST, kStable, timeout));
}

std::map<TopicPartition, CommittedOffset> Client::committed(
    const std::vector<TopicPartition>& partitions, std::chrono::milliseconds timeout) const {
  std::map<TopicPartition, CommittedOffset> offsets;
  const auto list = to_list(partitions);
  const auto code = read_committed(client_, list.get(), timeout);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw KafkaError(
        code, fmt::format("reading the group's committed offsets: {}", rd_kafka_err2str(code)));
  }
  for (int i = 0; i < list->cnt; ++i) {
    const auto& entry = list->elems[i];
    if (entry.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      throw KafkaError(entry.err,
                       fmt::format("reading the committed offset of {}[{}]: {}", entry.topic,
                                   entry.partition, rd_kafka_err2str(entry.err)));
    }
    CommittedOffset committed{entry.offset >= 0 ? entry.offset : -1, {}};
    if (entry.metadata != nullptr) {
      committed.metadata.assign(static_cast<const char*>(entry.metadata), entry.metadata_size);
    }
    offsets[{entry.topic, entry.partition}] = std::move(committed);
  }
  return offsets;
}

std::optional<std::string> Client::broker_setting(const std::string& name,
                                                  std::chrono::milliseconds timeout) const {
  const auto answer = metadata(false, timeout);
  if (answer->broker_cnt == 0)
    throw KafkaError(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "Kafka returned no broker");
  const auto broker = std::to_string(answer->brokers[0].id);
  const ConfigResourceHandle resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, broker.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  const auto options = admin_options(client_, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout);
  const QueueHandle queue(rd_kafka_queue_new(client_));
  rd_kafka_DescribeConfigs(client_, resources, 1, options.get(), queue.get());
  const auto event = wait_for(queue.get(), timeout, "describing a broker's settings");
  std::size_t count = 0;
  const auto** answers = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto error = rd_kafka_ConfigResource_error(answers[i]);
        error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      const char* why = rd_kafka_ConfigResource_error_string(answers[i]);
      throw KafkaError(error, fmt::format("describing the settings of broker {}: {}", broker,
                                          why != nullptr ? why : rd_kafka_err2str(error)));
    }
    std::size_t entries = 0;
    const auto** settings = rd_kafka_ConfigResource_configs(answers[i], &entries);
    for (std::size_t k = 0; k < entries; ++k) {
      const char* value = rd_kafka_ConfigEntry_value(settings[k]);
      if (rd_kafka_ConfigEntry_name(settings[k]) == name && value != nullptr)
        return value;
    }
  }
  return std::nullopt;
}

std::optional<GroupAssignment> Client::group_assignment(std::chrono::milliseconds timeout) const {
  require_broker(timeout);
  const char* groups[] = {group_.c_str()};
  const auto options = admin_options(client_, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS, timeout);
  const QueueHandle queue(rd_kafka_queue_new(client_));
  rd_kafka_DescribeConsumerGroups(client_, groups, 1, options.get(), queue.get());
  const auto event = wait_for(queue.get(), timeout, "describing the group");
  std::size_t count = 0;
  const auto** answers = rd_kafka_DescribeConsumerGroups_result_groups(
      rd_kafka_event_DescribeConsumerGroups_result(event.get()), &count);
  if (count != 1)
    throw KafkaError(RD_KAFKA_RESP_ERR__BAD_MSG, "describing the group: no response");
  const auto* group = answers[0];
  if (const auto* error = rd_kafka_ConsumerGroupDescription_error(group)) {
    const auto code = rd_kafka_error_code(error);
    if (code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
      return std::nullopt;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      throw KafkaError(code, fmt::format("describing the group: {}", rd_kafka_error_string(error)));
  }
  GroupAssignment found;
  found.settled =
      rd_kafka_ConsumerGroupDescription_state(group) == RD_KAFKA_CONSUMER_GROUP_STATE_STABLE;
  const auto members = rd_kafka_ConsumerGroupDescription_member_count(group);
  for (std::size_t i = 0; i < members; ++i) {
    const auto* assignment =
        rd_kafka_MemberDescription_assignment(rd_kafka_ConsumerGroupDescription_member(group, i));
    const auto* partitions = rd_kafka_MemberAssignment_partitions(assignment);
    for (int k = 0; partitions != nullptr && k < partitions->cnt; ++k)
      found.partitions.insert({partitions->elems[k].topic, partitions->elems[k].partition});
  }
  return found;
}

void Client::create_topic(const std::string& topic, std::int32_t partitions,
                          std::chrono::milliseconds timeout) const {
  require_broker(timeout);
  char error[256] = "";
  const NewTopicHandle wanted(
      rd_kafka_NewTopic_new(topic.c_str(), partitions, -1, error, sizeof error));
  if (!wanted)
    throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, fmt::format("topic {}: {}", topic, error));
  rd_kafka_NewTopic_t* topics[] = {wanted.get()};
  const auto options = admin_options(client_, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout);
  const QueueHandle queue(rd_kafka_queue_new(client_));
  rd_kafka_CreateTopics(client_, topics, 1, options.get(), queue.get());
  const auto event = wait_for(queue.get(), timeout, "creating a topic");
  std::size_t count = 0;
  const auto* const* results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = rd_kafka_topic_result_error(results[i]);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
      continue;
    const char* why = rd_kafka_topic_result_error_string(results[i]);
    throw KafkaError(code, fmt::format("creating topic {}: {}", topic,
                                       why != nullptr ? why : rd_kafka_err2str(code)));
  }
}

}  // namespace pawl::kafka
