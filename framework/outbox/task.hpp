#pragma once

#include <chrono>

#include "engine/background_task.hpp"
#include "engine/context.hpp"
#include "outbox/relay.hpp"

namespace pawl::engine {

/// When a consumer with these options publishes what stands in the outbox; nullopt: never.
[[nodiscard]] std::optional<RelayBegins> relays_outbox(const Options& options);

/// Publishes this process's share of the outbox while a consumer runs.
class OutboxTask final : public BackgroundTask {
 public:
  OutboxTask(Context& context, RelayBegins begins)
      : relay_(context.options, context.observers, context.owner, context.frame.outbox_written,
               begins) {}

  /// What is not published then waits for the next process.
  void stop(std::chrono::steady_clock::time_point deadline, bool finish) override {
    if (finish)
      relay_.finish(deadline);
    else
      relay_.stop();
  }

 private:
  OutboxRelay relay_;
};

}  // namespace pawl::engine
