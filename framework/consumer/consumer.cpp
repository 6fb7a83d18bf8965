#include "pawl/consumer.hpp"

#include "config/broker_list.hpp"
#include "config/validate.hpp"
#include "dead_letters/relay.hpp"
#include "dead_letters/retry_task.hpp"
#include "engine/supervisor.hpp"
#include "outbox/task.hpp"
#include "outbox/watcher.hpp"
#include "retention/task.hpp"

namespace pawl {
namespace {

std::vector<engine::MakeTask> background_tasks() {
  return {
      [](engine::Context& context) -> std::unique_ptr<engine::BackgroundTask> {
        const bool wanted = context.options.retention.interval != std::chrono::milliseconds(0);
        return wanted ? std::make_unique<engine::RetentionTask>(context) : nullptr;
      },
      [](engine::Context& context) -> std::unique_ptr<engine::BackgroundTask> {
        const bool wanted = !context.options.dead_letters.topic.empty();
        return wanted ? std::make_unique<engine::DeadLetterRelay>(context) : nullptr;
      },
      [](engine::Context& context) -> std::unique_ptr<engine::BackgroundTask> {
        return std::make_unique<engine::RetryTask>(context);
      },
      [](engine::Context& context) -> std::unique_ptr<engine::BackgroundTask> {
        const auto begins = engine::relays_outbox(context.options);
        return begins ? std::make_unique<engine::OutboxTask>(context, *begins) : nullptr;
      },
      [](engine::Context& context) -> std::unique_ptr<engine::BackgroundTask> {
        const bool wanted = context.options.outbox.alert_age != std::chrono::milliseconds(0);
        return wanted ? std::make_unique<engine::OutboxWatchTask>(context) : nullptr;
      },
  };
}

}  // namespace

struct Consumer::Impl {
  Impl(Options o, Registry r, std::vector<std::shared_ptr<Observer>> observers)
      : options(std::move(o)),
        registry(std::move(r)),
        supervisor(options, registry, std::move(observers), background_tasks()) {}

  Options options;
  Registry registry;
  engine::Supervisor supervisor;
};

Consumer::Consumer(Options options, Registry registry,
                   std::vector<std::shared_ptr<Observer>> observers) {
  config::require_valid(options);
  options.kafka.bootstrap_servers = config::normal_broker_list(options.kafka.bootstrap_servers);
  impl_ = std::make_unique<Impl>(std::move(options), std::move(registry), std::move(observers));
}

Consumer::~Consumer() = default;

RunResult Consumer::run() {
  return impl_->supervisor.run();
}

void Consumer::stop() {
  impl_->supervisor.stop();
}

std::vector<PartitionSnapshot> Consumer::partitions() const {
  return impl_->supervisor.partitions();
}

std::string Consumer::not_ready_reason() const {
  return impl_->supervisor.unready();
}

std::optional<std::size_t> Consumer::calls_in_flight() const {
  return impl_->supervisor.leases_held();
}

std::vector<Condition> Consumer::conditions() const {
  return impl_->supervisor.conditions();
}

std::chrono::milliseconds Consumer::heartbeat_age() const {
  return impl_->supervisor.silent_for();
}

}  // namespace pawl
