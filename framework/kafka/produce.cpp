#include "kafka/produce.hpp"

#include <algorithm>
#include <array>

#include "kafka/client.hpp"

namespace pawl::kafka {
namespace {

/// librdkafka's own limit of message.max.bytes.
constexpr std::size_t kLargestMessage = 1'000'000'000;
constexpr std::size_t kDefaultMessage = 1'000'000;

// What the promise rests on, and what would contradict it; the consumer does not mind them.
constexpr std::array<std::string_view, 20> kOurs{"transactional.id",
                                                 "transaction.timeout.ms",
                                                 "acks",
                                                 "request.required.acks",
                                                 "enable.idempotence",
                                                 "enable.gapless.guarantee",
                                                 "max.in.flight",
                                                 "max.in.flight.requests.per.connection",
                                                 "retries",
                                                 "message.send.max.retries",
                                                 "message.timeout.ms",
                                                 "delivery.timeout.ms",
                                                 "delivery.report.only.error",
                                                 "batch.num.messages",
                                                 "linger.ms",
                                                 "queue.buffering.max.ms",
                                                 "queue.buffering.max.messages",
                                                 "queue.buffering.max.kbytes",
                                                 "queuing.strategy",
                                                 "allow.auto.create.topics"};

rd_kafka_vu_t field(rd_kafka_vtype_t type, const std::optional<std::string_view>& bytes) {
  rd_kafka_vu_t result{};
  result.vtype = type;
  // librdkafka copies (RD_KAFKA_MSG_F_COPY) and never writes through the pointer. An empty view may
  // have no pointer, but null is no value at all.
  static constexpr char kEmpty = '\0';
  const char* data = !bytes ? nullptr : bytes->empty() ? &kEmpty : bytes->data();
  result.u.mem.ptr = const_cast<char*>(data);
  result.u.mem.size = bytes ? bytes->size() : 0;
  return result;
}

}  // namespace

Delivery::Outcome delivery_outcome(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Delivery::Outcome::kStored;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
      return Delivery::Outcome::kTooLarge;
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
      return Delivery::Outcome::kRefused;
    default:
      return Delivery::Outcome::kFailed;
  }
}

FailureReach reach_of(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
      return FailureReach::kUnknown;
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return FailureReach::kPartition;
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
    case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
    case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING:
    case RD_KAFKA_RESP_ERR_INVALID_TXN_STATE:
    case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
      return FailureReach::kProducer;
    default:
      // A broker answers for each partition; librdkafka's own errors are below zero.
      return error > 0 ? FailureReach::kPartition : FailureReach::kProducer;
  }
}

ConfHandle producer_conf(const KafkaOptions& options, std::size_t largest) {
  auto handle = common_conf(options);
  auto* conf = handle.get();
  set_property(conf, "message.max.bytes",
               std::to_string(std::clamp(largest, kDefaultMessage, kLargestMessage)));
  for (const auto& [name, value] : options.librdkafka) {
    if (std::find(kOurs.begin(), kOurs.end(), name) == kOurs.end())
      set_property(conf, name, value);
  }
  set_property(conf, "acks", "all");
  set_property(conf, "enable.idempotence", "true");
  // A topic that the broker makes by itself has one partition and keeps things for a week.
  set_property(conf, "allow.auto.create.topics", "false");
  return handle;
}

rd_kafka_resp_err_t produce(rd_kafka_t* client, const std::string& topic, const Outgoing& message,
                            void* opaque, std::optional<std::int32_t> partition) {
  std::vector<rd_kafka_vu_t> fields{field(RD_KAFKA_VTYPE_KEY, message.key),
                                    field(RD_KAFKA_VTYPE_VALUE, message.value)};
  rd_kafka_vu_t one{};
  one.vtype = RD_KAFKA_VTYPE_TOPIC;
  one.u.cstr = topic.c_str();
  fields.push_back(one);
  one.vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  one.u.i = RD_KAFKA_MSG_F_COPY;
  fields.push_back(one);
  // librdkafka wants names that end with a NUL.
  std::vector<std::string> names;
  names.reserve(message.headers.size());
  for (const auto& header : message.headers) {
    const auto value = field(RD_KAFKA_VTYPE_HEADER, header.value);
    one.vtype = RD_KAFKA_VTYPE_HEADER;
    one.u.header.name = names.emplace_back(header.name).c_str();
    one.u.header.val = value.u.mem.ptr;
    one.u.header.size = static_cast<ssize_t>(value.u.mem.size);
    fields.push_back(one);
  }
  if (partition) {
    one.vtype = RD_KAFKA_VTYPE_PARTITION;
    one.u.i32 = *partition;
    fields.push_back(one);
  }
  one.vtype = RD_KAFKA_VTYPE_OPAQUE;
  one.u.ptr = opaque;
  fields.push_back(one);
  const ErrorHandle error{rd_kafka_produceva(client, fields.data(), fields.size())};
  return rd_kafka_error_code(error.get());
}

std::optional<std::int32_t> partition_of_key(const KafkaOptions& options,
                                             const std::optional<std::string>& key,
                                             std::int32_t partitions) {
  const auto given = options.librdkafka.find("partitioner");
  const std::string_view name = given == options.librdkafka.end() ? std::string_view(kPartitioner)
                                                                  : std::string_view(given->second);
  const bool any =
      name.ends_with("_random") && (!key || (key->empty() && name == "consistent_random"));
  if (any || name == "random")
    return std::nullopt;
  const auto choose = name.starts_with("murmur2") ? rd_kafka_msg_partitioner_murmur2
                      : name.starts_with("fnv1a") ? rd_kafka_msg_partitioner_fnv1a
                                                  : rd_kafka_msg_partitioner_consistent;
  const std::string_view bytes = key ? std::string_view(*key) : std::string_view("");
  return choose(nullptr, bytes.data(), bytes.size(), partitions, nullptr, nullptr);
}

}  // namespace pawl::kafka
