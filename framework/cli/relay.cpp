// `relay`: publishes what stands in the outbox, and does nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>

#include "cli/commands.hpp"
#include "cli/stop_signals.hpp"
#include "cli/version.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "engine/owner.hpp"
#include "ops/log_observer.hpp"
#include "outbox/relay.hpp"
#include "outbox/store/view.hpp"

namespace pawl::cli {
namespace {

constexpr std::chrono::milliseconds kDrainPoll{200};

int relay(const Program& program, const Options& options, bool drain) {
  StopSignals::block();
  const auto log = std::make_shared<ops::LogObserver>(options);
  const engine::Observers observers({log});
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  const StopSignals signals([&](int signal) {
    log->stopping(signal == SIGINT ? "SIGINT" : "SIGTERM");
    const std::scoped_lock lock(mutex);
    stopped = true;
    changed.notify_all();
  });
  log->relaying(fmt::format("{} (pawl {})", program.name, pawl_version()), options);
  const auto session = drain ? connect_database(options) : nullptr;
  const engine::OutboxRelay outbox(options, observers, engine::make_owner());
  std::unique_lock lock(mutex);
  if (!drain) {
    changed.wait(lock, [&] { return stopped; });
    return kDone;
  }
  const ledger::OutboxView view(options.postgres.schema);
  while (!changed.wait_for(lock, kDrainPoll, [&] { return stopped; })) {
    const auto lanes = view.lanes(*session);
    if (std::ranges::all_of(lanes, [](const auto& lane) { return lane.waiting == 0; }))
      break;
  }
  return kDone;
}

}  // namespace

void add_relay(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "relay", "Publish the outbox to Kafka until SIGTERM or SIGINT, and do nothing else");
  const auto config = add_config_arguments(*command);
  const auto drain = std::make_shared<bool>(false);
  command->add_flag("--drain", *drain, "End once nothing waits");
  commands.set_action(command, [&commands, config, drain] {
    return relay(commands.program(), config->load(), *drain);
  });
}

}  // namespace pawl::cli
