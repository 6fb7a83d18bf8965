#include "engine/key_retention.hpp"

#include <algorithm>

#include "engine/message_key.hpp"

namespace pawl::engine {

milliseconds longer(milliseconds one, milliseconds other) {
  if (one == milliseconds{0} || other == milliseconds{0})
    return milliseconds{0};
  return std::max(one, other);
}

milliseconds key_retention(const HandlerOptions& handler, const Options& options) {
  return handler.retention.value_or(options.retention.keys);
}

KeyRetentions key_retentions(const Options& options) {
  KeyRetentions retentions;
  std::string buffer;
  for (const auto& handler : options.handlers) {
    const auto own = key_retention(handler, options);
    const auto configured = handler.scope.value_or(options.idempotency.scope);
    for (const auto& topic : handler.topics) {
      const auto& scope = scope_name(options.kafka, configured, topic, buffer);
      const auto [entry, added] = retentions.try_emplace({scope, topic}, own);
      if (!added)
        entry->second = longer(entry->second, own);
    }
  }
  return retentions;
}

}  // namespace pawl::engine
