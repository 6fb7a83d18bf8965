// `relay`: publishes what stands in the outbox, and does nothing else.
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cli/alerting.hpp"
#include "cli/commands.hpp"
#include "cli/monitoring.hpp"
#include "cli/programs.hpp"
#include "cli/reload.hpp"
#include "cli/service.hpp"
#include "cli/stop_signals.hpp"
#include "cli/version.hpp"
#include "config/invocation.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "engine/owner.hpp"
#include "engine/reachability.hpp"
#include "ledger/consumers.hpp"
#include "ops/log_observer.hpp"
#include "outbox/relay.hpp"
#include "outbox/store/view.hpp"
#include "outbox/watcher.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

constexpr std::chrono::milliseconds kDrainPoll{200};

/// A database that is away is waited for; one that this program does not serve is not.
void refuse_other_schema(const Options& options) {
  std::unique_ptr<postgres::Session> session;
  try {
    session = connect_bare(options);
  } catch (const FatalError&) {
    return;  // the relay tells of it
  }
  ledger::require_schema(*session, options.postgres.schema,
                         command_text(options.invocation, "migrate up"));
}

Ended relay(const Program& program, Reload& reload, bool drain) {
  const auto& options = reload.options();
  require_programs(options);
  StopSignals::block(StopSignals::Reload::kYes);
  const auto log = std::make_shared<ops::LogObserver>(options);
  const auto alerts = make_alerts(options, log);
  std::vector<std::shared_ptr<Observer>> told{log};
  if (alerts)
    told.push_back(alerts);
  const auto metrics = make_metrics(options);
  if (metrics)
    told.push_back(metrics);
  const engine::Observers observers(std::move(told));
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  bool anew = false;  // guarded by mutex, as stopped
  const auto stop = [&](bool and_begin_anew) {
    const std::scoped_lock lock(mutex);
    stopped = true;
    anew = and_begin_anew;
    changed.notify_all();
  };
  // The relay's threads end the process when they hang; this one only waits.
  Service service(reload.manager(), {[] { return std::chrono::milliseconds{0}; },
                                     [] { return std::string("publishing the outbox"); }});
  std::optional<StopSignals> signals(
      std::in_place,
      [&](int signal) {
        log->stopping(signal == SIGINT ? "SIGINT" : "SIGTERM");
        service.stopping();
        stop(false);
      },
      [&] {
        if (!reload.accepts(require_programs, *log, service))
          return false;
        stop(true);
        return true;
      });
  engine::Reachability database(observers, Step::kDatabaseUnreachable, Step::kDatabaseReachable);
  engine::Reachability kafka(observers, Step::kKafkaUnreachable, Step::kKafkaReachable);
  const auto monitoring = serve_metrics(
      options, program.registry, metrics,
      [&](ops::ProcessLook& look) { look.unready = engine::unready_without(database); });
  log->relaying({program.name, pawl_version()}, options);
  const auto session = drain ? connect_database(options) : nullptr;
  if (!drain)
    refuse_other_schema(options);
  bool drained = false;
  {
    const auto owner = engine::make_owner();
    const engine::OutboxRelay outbox(options, observers, owner, std::make_shared<engine::Bell>(),
                                     engine::RelayBegins::kAtOnce,
                                     {.database = &database, .kafka = &kafka});
    // A drain has an end by which whoever waits for it knows.
    const bool watches = !drain && options.outbox.alert_age != std::chrono::milliseconds{0};
    const auto watcher =
        watches ? std::make_unique<engine::OutboxWatcher>(options, observers, owner, &database)
                : nullptr;
    std::unique_lock lock(mutex);
    if (drain) {
      const ledger::OutboxView view(options.postgres.schema);
      while (!changed.wait_for(lock, kDrainPoll, [&] { return stopped; })) {
        drained = !view.any_waits(*session);
        if (drained)
          break;
      }
    } else {
      changed.wait(lock, [&] { return stopped; });
    }
  }
  log->relayed(drained);
  // A signal that comes later waits for the program that begins.
  const auto begins_anew = [&] {
    signals.reset();
    const std::scoped_lock lock(mutex);
    return anew && !drained;
  };
  const auto code =
      end_with(kDone, alerts, monitoring.get(), begins_anew, [&] { return reload.begin_anew(); });
  return {code, begins_anew()};
}

}  // namespace

void add_relay(Command& parser, Commands& commands) {
  auto* command =
      parser.add_subcommand("relay", "Publish the outbox to Kafka until SIGTERM or SIGINT");
  const auto config = add_config_arguments(*command);
  config->read_elsewhere = true;
  const auto drain = std::make_shared<bool>(false);
  command->add_flag("--drain", *drain, "Exit once no message waits");
  command->footer(exit_status_text({{"0", "stopped or drained"},
                                    {"1", "cannot continue; the last log line contains the reason"},
                                    {"2", "usage or configuration error; nothing was changed"},
                                    {"130", "second SIGINT; stopped immediately"},
                                    {"143", "second SIGTERM; stopped immediately"}},
                                   "Every exit is safe: unpublished messages stay in the outbox"));
  commands.set_action(command, [&commands, config, drain] {
    const auto read = [config](config::Files& files) { return config->load_to_relay(&files); };
    const auto& program = commands.program();
    return run_with_reload(program, read,
                           [&](Reload& reload) { return relay(program, reload, *drain); });
  });
}

}  // namespace pawl::cli
