#pragma once

#include <string>
#include <vector>

#include "message/topic_entries.hpp"
#include "pawl/options.hpp"

namespace pawl::handlers {

/// What the handlers say of their topics. No pattern means a topic that this configuration itself
/// writes to: dead_letters.topic, outbox.state_topic, and those that its statements name to
/// pawl.publish, whose messages would be processed in a circle.
[[nodiscard]] message::TopicEntries topic_entries(const Options& options);

/// The same configuration with topics that exist in place of the patterns that mean them.
[[nodiscard]] Options with_topics(Options options, const std::vector<std::string>& existing);

}  // namespace pawl::handlers
