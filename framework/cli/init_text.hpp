#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/init_settings.hpp"
#include "pawl/message.hpp"

namespace pawl::cli {

/// The arguments of `init`, and facts of the topic.
struct InitFacts {
  std::string bootstrap_servers;
  std::string group;
  std::string url;
  std::string topic;
  std::int32_t partitions = 0;
  InitSettings settings = {};  ///< further options, which may replace these
};

/// A first configuration with comments. `sample`: a message of the topic, from which statement,
/// key, and table are derived; nullopt if the topic has none.
[[nodiscard]] std::string init_text(const InitFacts& facts, const std::optional<Message>& sample);

/// Candidates for the idempotency key of such messages, the best first: "{header:event-id}".
[[nodiscard]] std::vector<std::string> key_candidates(const Message& sample);

}  // namespace pawl::cli
