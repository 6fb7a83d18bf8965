#pragma once

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/handles.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"

namespace pawl::kafka {

/// What is to be stored in a topic. Views, read during the call only; absent is Kafka's null.
struct Outgoing {
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::vector<Header> headers;
};

/// What became of a message, as far as librdkafka knows.
struct Delivery {
  enum class Outcome {
    kStored,    ///< confirmed by all in-sync replicas
    kTooLarge,  ///< for the topic or a broker
    kRefused,   ///< for another property of its own, as without a key in a compacted topic
    kFailed,    ///< not stored for a reason that is not its own
  };
  std::int64_t tag = 0;
  Outcome outcome = Outcome::kStored;
  std::string why = {};  ///< librdkafka's text; empty where it is stored
};

/// What such an error of one message's means.
[[nodiscard]] Delivery::Outcome delivery_outcome(rd_kafka_resp_err_t error);

/// What the error of a message that is not at fault itself means for the other messages of its
/// transaction.
enum class FailureReach {
  kPartition,  ///< messages for its partition fail as well
  kProducer,   ///< all of them fail
  kUnknown,    ///< it was given up: because of another failure, or because no response came
};
[[nodiscard]] FailureReach reach_of(rd_kafka_resp_err_t error);

/// What every producer of ours begins with: the connection of the consumer, acks=all, idempotence.
/// `largest`: bytes of a message that librdkafka lets pass. Throws KafkaError when librdkafka
/// refuses a property.
[[nodiscard]] ConfHandle producer_conf(const KafkaOptions& options, std::size_t largest);

/// Queues a copy. `opaque` comes back with the message's delivery report. `partition` nullopt: as
/// the key says. What librdkafka answers.
[[nodiscard]] rd_kafka_resp_err_t produce(rd_kafka_t* client, const std::string& topic,
                                          const Outgoing& message, void* opaque,
                                          std::optional<std::int32_t> partition = std::nullopt);

/// How keys choose a partition unless [kafka.librdkafka] sets it: as in Kafka's Java clients, so
/// that a key is where their readers expect it.
inline constexpr const char* kPartitioner = "murmur2_random";

/// The partition of this number of partitions that librdkafka chooses for a key; nullopt: any.
[[nodiscard]] std::optional<std::int32_t> partition_of_key(const KafkaOptions& options,
                                                           const std::optional<std::string>& key,
                                                           std::int32_t partitions);

}  // namespace pawl::kafka
