#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "kafka/bootstrap.hpp"
#include "kafka/client.hpp"
#include "kafka/handles.hpp"
#include "kafka/produce.hpp"
#include "pawl/options.hpp"

namespace pawl::kafka {

/// One idempotent librdkafka producer with the connection properties of the consumer. Each message
/// is a batch of its own, so that one which Kafka refuses takes no other with it. While brokers are
/// away it tries again without limit and without storing a message twice. The destructor drops
/// messages that are not confirmed, and some of them may be stored all the same. One thread.
class Producer {
 public:
  /// `largest`: bytes of a message that librdkafka lets pass; the broker and the topic have limits
  /// of their own. Throws KafkaError when librdkafka refuses a property. Does not connect yet.
  Producer(const KafkaOptions& options, std::size_t largest, LogFunction log);
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  /// Queues a copy; deliveries() will tell. `tag` names it, uniquely until then.
  void send(const std::string& topic, const Outgoing& message, std::int64_t tag);
  /// What has been decided since the last call; waits up to `timeout` for something.
  std::vector<Delivery> deliveries(std::chrono::milliseconds timeout);
  /// What librdkafka said last of brokers that are away or refuse; empty: nothing.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void decide(const std::int64_t* tag, rd_kafka_resp_err_t error);

  Bootstrap bootstrap_;
  ClientHandle handle_;
  rd_kafka_t* client_;
  QueueHandle events_;
  std::set<std::int64_t> undecided_;  ///< librdkafka holds pointers to its elements
  std::vector<Delivery> decided_;
  std::string problem_;
};

}  // namespace pawl::kafka
