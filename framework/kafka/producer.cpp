#include "kafka/producer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pawl::kafka {
namespace {

Delivery::Outcome outcome_of(rd_kafka_resp_err_t error) {
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

/// librdkafka's own limit of message.max.bytes.
constexpr std::size_t kLargestMessage = 1'000'000'000;
constexpr std::size_t kDefaultMessage = 1'000'000;

// What the promise rests on, and what would contradict it; the consumer does not mind them.
constexpr std::array<std::string_view, 19> kOurs{"transactional.id",
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

ConfHandle make_conf(const KafkaOptions& options, std::size_t largest) {
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
  set_property(conf, "batch.num.messages", "1");
  set_property(conf, "linger.ms", "0");
  // Who gives up on a message and sends it again may store it twice.
  set_property(conf, "message.timeout.ms", "0");
  // A topic that the broker makes by itself has one partition and keeps things for a week.
  set_property(conf, "allow.auto.create.topics", "false");
  return handle;
}

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

Producer::Producer(const KafkaOptions& options, std::size_t largest, LogFunction log)
    : log_(std::move(log)), bootstrap_(options.bootstrap_servers) {
  auto conf = make_conf(options, largest);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_log_cb(conf.get(), &Producer::on_log);
  rd_kafka_conf_set_events(conf.get(), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
  char error[512];
  client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), error, sizeof error);
  if (client_ == nullptr) {
    throw KafkaError(rd_kafka_last_error(), fmt::format("cannot make a Kafka producer: {}", error));
  }
  static_cast<void>(conf.release());  // rd_kafka_new took it
  events_.reset(rd_kafka_queue_get_main(client_));
}

Producer::~Producer() {
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  events_.reset();
  rd_kafka_destroy(client_);
}

void Producer::send(const std::string& topic, const Outgoing& message, std::int64_t tag) {
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
  const auto* place = &*undecided_.insert(tag).first;
  one.vtype = RD_KAFKA_VTYPE_OPAQUE;
  one.u.ptr = const_cast<std::int64_t*>(place);
  fields.push_back(one);
  if (const ErrorHandle error{rd_kafka_produceva(client_, fields.data(), fields.size())})
    decide(place, rd_kafka_error_code(error.get()));
}

void Producer::decide(const std::int64_t* tag, rd_kafka_resp_err_t error) {
  decided_.push_back({*tag, outcome_of(error),
                      error == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : rd_kafka_err2str(error)});
  undecided_.erase(undecided_.find(*tag));
}

std::vector<Delivery> Producer::deliveries(std::chrono::milliseconds timeout) {
  auto wait = decided_.empty() ? static_cast<int>(timeout.count()) : 0;
  while (const EventHandle event{rd_kafka_queue_poll(events_.get(), wait)}) {
    wait = 0;
    if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR)
      problem_ = rd_kafka_event_error_string(event.get());
    if (rd_kafka_event_type(event.get()) != RD_KAFKA_EVENT_DR)
      continue;
    while (const auto* message = rd_kafka_event_message_next(event.get()))
      decide(static_cast<const std::int64_t*>(message->_private), message->err);
  }
  if (decided_.empty() && !undecided_.empty())
    bootstrap_.name_again(client_);
  if (std::any_of(decided_.begin(), decided_.end(),
                  [](const auto& d) { return d.outcome == Delivery::Outcome::kStored; }))
    problem_.clear();
  return std::exchange(decided_, {});
}

void Producer::on_log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
  const auto* self = static_cast<const Producer*>(rd_kafka_opaque(client));
  if (self == nullptr || !self->log_)
    return;
  // Properties that are the consumer's alone are none of ours, and it said what is wrong with them.
  // That messages are dropped is our intention.
  const std::string_view about(facility);
  if (about != "CONFWARN" && about != "TERMINATE")
    self->log_(level, facility, text);
}

}  // namespace pawl::kafka
