#include "outbox/task.hpp"

#include <algorithm>

#include "postgres/statement.hpp"

namespace pawl::engine {

std::optional<RelayBegins> relays_outbox(const Options& options) {
  if (options.outbox.relay == RelayOutbox::kOff)
    return std::nullopt;
  if (options.outbox.relay == RelayOutbox::kOn)
    return RelayBegins::kAtOnce;
  const auto publishes = [](const auto& statement) {
    return postgres::calls_publish(statement.text);
  };
  const bool says_so = std::ranges::any_of(options.handlers, [&](const HandlerOptions& handler) {
    return std::ranges::any_of(handler.sql, publishes) || publishes(handler.response);
  });
  // What code, functions and triggers do shows when they do it.
  return says_so ? RelayBegins::kAtOnce : RelayBegins::kOnceNeeded;
}

}  // namespace pawl::engine
