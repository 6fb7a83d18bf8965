#pragma once

#include <chrono>

#include "engine/background_task.hpp"
#include "engine/context.hpp"
#include "outbox/relay.hpp"

namespace pawl::engine {

/// Whether a consumer with these options publishes what stands in the outbox.
[[nodiscard]] bool relays_outbox(const Options& options);

/// Publishes this process's share of the outbox while a consumer runs.
class OutboxTask final : public BackgroundTask {
 public:
  explicit OutboxTask(Context& context)
      : relay_(context.options, context.observers, context.owner) {}

  /// What is not published yet waits for the next process.
  void stop(std::chrono::steady_clock::time_point /*deadline*/, bool /*finish*/) override {
    relay_.stop();
  }

 private:
  OutboxRelay relay_;
};

}  // namespace pawl::engine
