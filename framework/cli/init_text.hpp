#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/init_settings.hpp"
#include "pawl/message.hpp"

namespace pawl::cli {

/// What `init` was told and has seen.
struct InitFacts {
  std::string bootstrap_servers;
  std::string group;
  std::string url;
  std::string topic;
  std::int32_t partitions = 0;
  InitSettings settings = {};  ///< what was set beside these, or in their place
};

/// A configuration to begin with, commented; `sample`: a message of the topic, nullopt where it has
/// none. Everything that was guessed from it says so.
[[nodiscard]] std::string init_text(const InitFacts& facts, const std::optional<Message>& sample);

/// Where the idempotency key of such messages may stand, best first: "{header:event-id}".
[[nodiscard]] std::vector<std::string> key_candidates(const Message& sample);

}  // namespace pawl::cli
