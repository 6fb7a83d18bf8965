#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "kafka/client.hpp"
#include "message/topic_entries.hpp"

namespace pawl::kafka {

/// The topics that there are for these entries. Asks Kafka only where there are patterns; throws
/// KafkaError where it does not answer in time.
[[nodiscard]] inline message::TopicEntries::Chosen choose_topics(
    const Client& client, const message::TopicEntries& entries, std::chrono::milliseconds timeout) {
  return entries.choose(entries.has_patterns() ? client.topic_names(timeout)
                                               : std::vector<std::string>{});
}

}  // namespace pawl::kafka
