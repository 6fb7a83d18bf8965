#include "outbox/task.hpp"

#include <algorithm>

#include "postgres/statement.hpp"

namespace pawl::engine {

std::optional<RelayBegins> relays_outbox(const Options& options) {
  if (options.outbox.relay == RelayOutbox::kOff)
    return std::nullopt;
  if (options.outbox.relay == RelayOutbox::kOn)
    return RelayBegins::kAtOnce;
  std::optional<RelayBegins> begins;
  for (const auto& handler : options.handlers) {
    const auto publishes = std::ranges::any_of(
        handler.sql, [](const auto& statement) { return postgres::calls_publish(statement.text); });
    if (publishes)
      return RelayBegins::kAtOnce;
    // What code and functions do shows when they do it.
    if (handler.sql.empty())
      begins = RelayBegins::kOnceNeeded;
  }
  return begins;
}

}  // namespace pawl::engine
