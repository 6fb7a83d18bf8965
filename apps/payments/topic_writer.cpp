#include "topic_writer.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace payments {
namespace {

constexpr int kTimeoutMs = 30'000;
constexpr int kFullQueueMs = 100;
constexpr int kRetryMs = 100;
// librdkafka fails a message after 5 minutes (message.timeout.ms), and then reports the reason.
constexpr int kFlushMs = 310'000;

using TopicHandle = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;
using QueueHandle = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using EventHandle = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using MetadataHandle =
    std::unique_ptr<const rd_kafka_metadata_t, Destroyer<rd_kafka_metadata_destroy>>;

[[noreturn]] void fail(const std::string& what, rd_kafka_resp_err_t code) {
  throw std::runtime_error(fmt::format("{}: {}", what, rd_kafka_err2str(code)));
}

rd_kafka_vu_t bytes(rd_kafka_vtype_t type, const std::string& text) {
  rd_kafka_vu_t field{};
  field.vtype = type;
  // librdkafka copies (RD_KAFKA_MSG_F_COPY) and never writes through the pointer.
  field.u.mem.ptr = const_cast<char*>(text.data());
  field.u.mem.size = text.size();
  return field;
}

}  // namespace

TopicWriter::TopicWriter(const std::string& bootstrap_servers, std::string topic, bool at_once)
    : topic_(std::move(topic)) {
  auto* conf = rd_kafka_conf_new();
  std::array<char, 512> why{};
  const auto set = [&](const char* name, const char* value) {
    if (rd_kafka_conf_set(conf, name, value, why.data(), why.size()) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      throw std::runtime_error(fmt::format("{}: {}", name, why.data()));
    }
  };
  set("bootstrap.servers", bootstrap_servers.c_str());
  set("enable.idempotence", "true");
  set("linger.ms", at_once ? "0" : "5");
  set("log_level", "2");  // a broker that has just started refuses some requests: no news
  set("partitioner", "murmur2_random");
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  kafka_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size()));
  if (!kafka_) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(fmt::format("cannot create a Kafka producer: {}", why.data()));
  }
}

void TopicWriter::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto& failure = static_cast<TopicWriter*>(self)->failure_;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && failure.empty()) {
    failure = rd_kafka_err2str(message->err);
  }
}

void TopicWriter::require_delivered() const {
  if (failure_.empty())
    return;
  throw std::runtime_error(
      fmt::format("Kafka rejected a message of topic {}: {}", topic_, failure_));
}

std::int32_t TopicWriter::ensure_topic(std::int32_t partitions) {
  const auto existing = partitions_there();
  if (existing > 0)
    return existing;
  std::array<char, 512> why{};
  const TopicHandle topic(
      rd_kafka_NewTopic_new(topic_.c_str(), partitions, -1, why.data(), why.size()));
  if (!topic)
    throw std::runtime_error(fmt::format("topic {}: {}", topic_, why.data()));
  const QueueHandle queue(rd_kafka_queue_new(kafka_.get()));
  auto* asked = topic.get();
  rd_kafka_CreateTopics(kafka_.get(), &asked, 1, nullptr, queue.get());
  const EventHandle event(rd_kafka_queue_poll(queue.get(), kTimeoutMs));
  if (!event)
    fail("creating topic " + topic_, RD_KAFKA_RESP_ERR__TIMED_OUT);
  auto code = rd_kafka_event_error(event.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    std::size_t count = 0;
    const auto* result = rd_kafka_event_CreateTopics_result(event.get());
    code = rd_kafka_topic_result_error(rd_kafka_CreateTopics_result_topics(result, &count)[0]);
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("creating topic " + topic_, code);
  return partitions;
}

// All topics are asked for: asking for one by name may create it, with the broker's own numbers.
std::int32_t TopicWriter::partitions_there() const {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(kafka_.get(), 1, nullptr, &answer, kTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("asking for the topics", code);
  const MetadataHandle metadata(answer);
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    if (metadata->topics[i].topic == topic_)
      return metadata->topics[i].partition_cnt;
  }
  return 0;
}

void TopicWriter::send(const Event& event, std::size_t value_bytes) {
  const auto value = event.json(value_bytes);
  std::array<rd_kafka_vu_t, 6> fields{bytes(RD_KAFKA_VTYPE_KEY, event.account),
                                      bytes(RD_KAFKA_VTYPE_VALUE, value)};
  fields[2].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[2].u.cstr = topic_.c_str();
  fields[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[3].u.i = RD_KAFKA_MSG_F_COPY;
  fields[4].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[4].u.i32 = event.partition.value_or(RD_KAFKA_PARTITION_UA);
  fields[5].vtype = RD_KAFKA_VTYPE_HEADER;
  fields[5].u.header.name = "event-id";
  fields[5].u.header.val = event.id.data();
  fields[5].u.header.size = static_cast<ssize_t>(event.id.size());
  while (true) {
    const std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>> error(
        rd_kafka_produceva(kafka_.get(), fields.data(), fields.size()));
    const auto code = error ? rd_kafka_error_code(error.get()) : RD_KAFKA_RESP_ERR_NO_ERROR;
    // Only polling makes room in a full queue: RD_KAFKA_MSG_F_BLOCK would wait for it forever.
    const bool full = code == RD_KAFKA_RESP_ERR__QUEUE_FULL;
    rd_kafka_poll(kafka_.get(), full ? kFullQueueMs : 0);
    require_delivered();
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
      return;
    if (!full)
      fail("producing to topic " + topic_, code);
  }
}

void TopicWriter::flush() {
  const auto code = rd_kafka_flush(kafka_.get(), kFlushMs);
  require_delivered();
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("waiting for Kafka's acknowledgements", code);
}

std::vector<std::int64_t> TopicWriter::ends(std::int32_t partitions) const {
  std::vector<std::int64_t> result;
  for (std::int32_t partition = 0; partition < partitions; ++partition)
    result.push_back(end(partition));
  return result;
}

// A partition that was just created may have no leader yet.
std::int64_t TopicWriter::end(std::int32_t partition) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
  while (true) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    const auto code = rd_kafka_query_watermark_offsets(kafka_.get(), topic_.c_str(), partition,
                                                       &low, &high, kTimeoutMs);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
      return high;
    const bool soon = code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
                      code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                      code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
                      code == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    if (!soon || std::chrono::steady_clock::now() > deadline)
      fail("asking for the log's ends", code);
    std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
    static_cast<void>(partitions_there());  // librdkafka would refresh its metadata much later
  }
}

}  // namespace payments
