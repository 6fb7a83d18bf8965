#include "outbox/task.hpp"

#include <algorithm>

namespace pawl::engine {

bool relays_outbox(const Options& options) {
  if (options.outbox.relay != RelayOutbox::kAuto)
    return options.outbox.relay == RelayOutbox::kOn;
  const auto call = options.postgres.schema + ".publish";
  return std::ranges::any_of(options.handlers, [&](const HandlerOptions& handler) {
    return std::ranges::any_of(handler.sql, [&](const SqlStatement& statement) {
      return statement.text.find(call) != std::string::npos;
    });
  });
}

}  // namespace pawl::engine
