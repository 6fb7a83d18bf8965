#include <fmt/format.h>

#include <pawl/testing/kafka_producer.hpp>
#include <pawl/testing/wait.hpp>
#include <stdexcept>

#include "testing/kafka_handles.hpp"

namespace pawl::testing {

namespace {

constexpr int kTimeoutMs = 60'000;
constexpr std::chrono::seconds kBrokersNamedAgain{10};

/// A value of librdkafka's produceva list; absent text is Kafka's null.
rd_kafka_vu_t field(rd_kafka_vtype_t type, const std::optional<std::string>& text) {
  rd_kafka_vu_t result{};
  result.vtype = type;
  // librdkafka copies (RD_KAFKA_MSG_F_COPY) and never writes through the pointer.
  result.u.mem.ptr = text ? const_cast<char*>(text->data()) : nullptr;
  result.u.mem.size = text ? text->size() : 0;
  return result;
}

std::vector<rd_kafka_vu_t> fields(const std::string& topic, const Record& record) {
  std::vector<rd_kafka_vu_t> all{field(RD_KAFKA_VTYPE_KEY, record.key),
                                 field(RD_KAFKA_VTYPE_VALUE, record.value)};
  rd_kafka_vu_t one{};
  one.vtype = RD_KAFKA_VTYPE_TOPIC;
  one.u.cstr = topic.c_str();
  all.push_back(one);
  one.vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  one.u.i = RD_KAFKA_MSG_F_COPY;
  all.push_back(one);
  one.vtype = RD_KAFKA_VTYPE_PARTITION;
  one.u.i32 = record.partition < 0 ? RD_KAFKA_PARTITION_UA : record.partition;
  all.push_back(one);
  if (record.timestamp_ms != 0) {
    one.vtype = RD_KAFKA_VTYPE_TIMESTAMP;
    one.u.i64 = record.timestamp_ms;
    all.push_back(one);
  }
  for (const auto& [name, value] : record.headers) {
    one.vtype = RD_KAFKA_VTYPE_HEADER;
    one.u.header.name = name.c_str();
    one.u.header.val = value ? value->data() : nullptr;
    one.u.header.size = value ? static_cast<ssize_t>(value->size()) : 0;
    all.push_back(one);
  }
  return all;
}

}  // namespace

/// Delivery reports come as events on the main queue, so that no callback runs anywhere.
class KafkaProducer::Client {
 public:
  Client(const std::string& bootstrap, const std::map<std::string, std::string>& properties)
      : kafka_{make_client(RD_KAFKA_PRODUCER, bootstrap, properties)},
        events_{rd_kafka_queue_get_main(kafka_.get())} {}

  ~Client() { rd_kafka_purge(kafka_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  rd_kafka_t* get() const { return kafka_.get(); }

  void serve(int timeout_ms) {
    const EventHandle event{rd_kafka_queue_poll(events_.get(), timeout_ms)};
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR) {
      while (const auto* message = rd_kafka_event_message_next(event.get())) {
        --in_flight_;
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
          refused_ = message->err;
        }
      }
    }
  }

  void sent() { ++in_flight_; }
  bool idle() const { return in_flight_ == 0; }
  rd_kafka_resp_err_t take_refused() { return std::exchange(refused_, RD_KAFKA_RESP_ERR_NO_ERROR); }

 private:
  KafkaHandle kafka_;
  QueueHandle events_;
  std::int64_t in_flight_ = 0;
  rd_kafka_resp_err_t refused_ = RD_KAFKA_RESP_ERR_NO_ERROR;
};

KafkaProducer::KafkaProducer(const std::string& bootstrap, const std::string& transactional_id,
                             const std::map<std::string, std::string>& properties)
    : bootstrap_(bootstrap) {
  auto all = properties;
  if (!transactional_id.empty()) {
    all["transactional.id"] = transactional_id;
  }
  all.insert({"linger.ms", "1"});
  client_ = std::make_unique<Client>(bootstrap, all);
  if (!transactional_id.empty()) {
    require(ErrorHandle{rd_kafka_init_transactions(client_->get(), kTimeoutMs)},
            "initialising transactions of " + transactional_id);
  }
}

KafkaProducer::~KafkaProducer() = default;

void KafkaProducer::send(const std::string& topic, const Record& record) {
  const auto all = fields(topic, record);
  while (true) {
    const ErrorHandle error{rd_kafka_produceva(client_->get(), all.data(), all.size())};
    if (!error) {
      client_->sent();
      client_->serve(0);
      return;
    }
    if (rd_kafka_error_code(error.get()) != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      require(rd_kafka_error_code(error.get()), "producing to " + topic,
              rd_kafka_error_string(error.get()));
    }
    client_->serve(100);
  }
}

void KafkaProducer::flush(std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  // A fenced broker tells of no brokers, and librdkafka is left without any (kafka/bootstrap.hpp).
  auto name_again = std::chrono::steady_clock::now() + kBrokersNamedAgain;
  while (!client_->idle()) {
    client_->serve(100);
    if (std::chrono::steady_clock::now() > name_again) {
      rd_kafka_brokers_add(client_->get(), bootstrap_.c_str());
      name_again += kBrokersNamedAgain;
    }
    if (std::chrono::steady_clock::now() > end) {
      throw Timeout{
          fmt::format("the broker did not acknowledge all messages within {} ms. Is it running?",
                      deadline.count())};
    }
  }
  require(client_->take_refused(), "producing");
}

void KafkaProducer::begin() {
  require(ErrorHandle{rd_kafka_begin_transaction(client_->get())}, "beginning a transaction");
}

// Flushed first by us: with delivery reports as events, librdkafka's own flush would wait for
// somebody to serve them.
void KafkaProducer::commit() {
  flush();
  require(ErrorHandle{rd_kafka_commit_transaction(client_->get(), kTimeoutMs)},
          "committing a transaction");
}

void KafkaProducer::abort() {
  flush();
  require(ErrorHandle{rd_kafka_abort_transaction(client_->get(), kTimeoutMs)},
          "aborting a transaction");
}

}  // namespace pawl::testing
