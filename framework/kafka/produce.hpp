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

/// What such an error of a message that is not at fault itself says of the others of its
/// transaction.
enum class FailureReach {
  kPartition,  ///< those for its partition fail as well
  kProducer,   ///< all of them
  kUnknown,    ///< it was given up: for another's failure, or because no answer came
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

/// Where a key goes unless [kafka.librdkafka] says it: as with the clients in Java, so that it is
/// where their readers expect it.
inline constexpr const char* kPartitioner = "murmur2_random";

/// The partition to which librdkafka lets a key lead among so many; nullopt: any.
[[nodiscard]] std::optional<std::int32_t> partition_of_key(const KafkaOptions& options,
                                                           const std::optional<std::string>& key,
                                                           std::int32_t partitions);

}  // namespace pawl::kafka
