#include "kafka/producer.hpp"

#include <algorithm>
#include <utility>

#include "kafka/advice.hpp"

namespace pawl::kafka {
namespace {

ConfHandle make_conf(const KafkaOptions& options, std::size_t largest) {
  auto conf = producer_conf(options, largest);
  set_property(conf.get(), "batch.num.messages", "1");
  set_property(conf.get(), "linger.ms", "0");
  // Who gives up on a message and sends it again may store it twice.
  set_property(conf.get(), "message.timeout.ms", "0");
  return conf;
}

}  // namespace

Producer::Producer(const KafkaOptions& options, std::size_t largest, LogFunction log)
    : bootstrap_(options.bootstrap_servers),
      handle_(options, RD_KAFKA_PRODUCER, make_conf(options, largest), std::move(log)),
      client_(handle_.get()),
      events_(rd_kafka_queue_get_main(client_)) {}

void Producer::send(const std::string& topic, const Outgoing& message, std::int64_t tag) {
  const auto* place = &*undecided_.insert(tag).first;
  const auto error = produce(client_, topic, message, const_cast<std::int64_t*>(place));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    decide(place, error);
}

void Producer::decide(const std::int64_t* tag, rd_kafka_resp_err_t error) {
  decided_.push_back({*tag, delivery_outcome(error),
                      error == RD_KAFKA_RESP_ERR_NO_ERROR ? "" : rd_kafka_err2str(error)});
  undecided_.erase(undecided_.find(*tag));
}

std::vector<Delivery> Producer::deliveries(std::chrono::milliseconds timeout) {
  auto wait = decided_.empty() ? static_cast<int>(timeout.count()) : 0;
  while (const EventHandle event{rd_kafka_queue_poll(events_.get(), wait)}) {
    wait = 0;
    if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_ERROR)
      problem_ = explained(rd_kafka_event_error_string(event.get()));
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

}  // namespace pawl::kafka
