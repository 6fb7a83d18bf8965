#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "console/kafka_look.hpp"
#include "pawl/options.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::cli {

/// Partitions of one topic that Kafka has and the register has not.
struct UnstoredPartitions {
  std::string topic;
  std::vector<std::int32_t> partitions;
  bool all = false;  ///< of the topic
};

/// What Kafka has of a consumer's topics, beside what is stored of them.
struct TopicsSeen {
  std::vector<std::string> missing;  ///< named in the configuration, and do not exist
  /// That a pattern means, offsets are stored of, and do not exist any more.
  std::vector<std::string> gone;
  std::map<std::string, std::string> refused;  ///< that Kafka refuses to tell of, and why
  /// Topics that several patterns match, so no handler takes them: a sentence for each, without its
  /// period.
  std::map<std::string, std::string> ambiguous;
  /// Nobody has met them, or the one who did refused them.
  std::vector<UnstoredPartitions> unstored;
};

/// Of a look that asked for the handlers' topics. Where Kafka could not be asked (look.problem)
/// only `refused` and `ambiguous` are known.
[[nodiscard]] TopicsSeen topics_seen(const Options& options, const KafkaLook& look,
                                     const std::set<TopicPartition>& stored);

// Sentences for people.
[[nodiscard]] std::string missing_topic_text(const std::string& topic);
[[nodiscard]] std::string gone_topic_text(const std::string& topic);
[[nodiscard]] std::string unstored_text(const UnstoredPartitions& unstored);
/// "orders", or "orders[1,3]" if other partitions of the topic have an offset.
[[nodiscard]] std::string unstored_name(const UnstoredPartitions& unstored);

}  // namespace pawl::cli
