#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <optional>
#include <utility>

#include "cli/alerting.hpp"
#include "cli/commands.hpp"
#include "cli/monitoring.hpp"
#include "cli/programs.hpp"
#include "cli/reload.hpp"
#include "cli/service.hpp"
#include "cli/stop_signals.hpp"
#include "cli/version.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/counted.hpp"
#include "kafka/handles.hpp"
#include "ops/log_observer.hpp"
#include "pawl/consumer.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

std::unique_ptr<Consumer> make_consumer(const Options& options, const Registry& registry,
                                        std::vector<std::shared_ptr<Observer>> observers) {
  try {
    return std::make_unique<Consumer>(options, registry, std::move(observers));
  } catch (const kafka::KafkaError& error) {
    throw BadCall(fmt::format("{}. Fix [kafka.librdkafka]", error.what()));
  }
}

/// What `systemctl status` shows.
std::string line_of(const std::vector<PartitionSnapshot>& partitions) {
  const auto count = [&](auto what) {
    return std::count_if(partitions.begin(), partitions.end(), what);
  };
  const auto halted = count([](const PartitionSnapshot& p) { return p.halted; });
  const auto paused = count([](const PartitionSnapshot& p) { return p.paused; });
  auto line = counted(std::ssize(partitions), "partition", "partitions");
  if (halted > 0)
    line += fmt::format(", {} halted", halted);
  if (paused > 0)
    line += fmt::format(", {} paused", paused);
  return line;
}

/// Throws what speaks against a process that begins with these options.
void require_usable(const Program& program, const Options& options) {
  require_programs(options);
  (void)make_consumer(options, program.registry, {});
}

Ended run(const Program& program, Reload& reload) {
  const auto& options = reload.options();
  require_programs(options);
  StopSignals::block(StopSignals::Reload::kYes);
  const auto log = std::make_shared<ops::LogObserver>(options);
  const auto alerts = make_alerts(options, log);
  std::vector<std::shared_ptr<Observer>> observers{log};
  if (alerts)
    observers.push_back(alerts);
  const auto metrics = make_metrics(options);
  if (metrics)
    observers.push_back(metrics);
  const auto consumer = make_consumer(options, program.registry, std::move(observers));
  std::atomic<bool> anew{false};
  Service service(reload.manager(), {[&] { return consumer->heartbeat_age(); },
                                     [&] { return line_of(consumer->partitions()); }});
  std::optional<StopSignals> signals(
      std::in_place,
      [&](int signal) {
        anew = false;
        log->stopping(signal == SIGINT ? "SIGINT" : "SIGTERM");
        service.stopping();
        consumer->stop();
      },
      [&] {
        const auto check = [&](const Options& now) { require_usable(program, now); };
        if (!reload.accepts(check, *log, service))
          return false;
        anew = true;
        consumer->stop();
        return true;
      });
  std::unique_ptr<Monitoring> monitoring;
  log->starting({program.name, pawl_version()}, options, program.registry, *consumer);
  try {
    monitoring = serve_metrics(options, program.registry, metrics, [&](ops::ProcessLook& look) {
      look.silent_for = consumer->heartbeat_age();
      look.unready = consumer->not_ready_reason();
      look.partitions = consumer->partitions();
      look.leases_held = consumer->calls_in_flight();
      look.conditions = consumer->conditions();
    });
    const auto result = consumer->run();
    log->ended(result);
    // A signal that comes later waits for the program that begins.
    const auto begins_anew = [&] {
      signals.reset();
      return anew.load();
    };
    const auto code = end_with(static_cast<int>(result), alerts, monitoring.get(), begins_anew,
                               [&] { return reload.begin_anew(); });
    return {code, begins_anew()};
  } catch (const FatalError& error) {
    log->failed(error.what());
    return {end_with(static_cast<int>(RunResult::kFatal), alerts, monitoring.get())};
  } catch (const std::exception& error) {
    // The engine was left in the middle of something, and may have threads that wait for it.
    // Whatever is not committed runs again.
    log->failed(fmt::format("unexpected error: {}. Exiting now. Please report this", error.what()));
    ::_exit(kFailed);
  }
}

}  // namespace

void add_run(Command& parser, Commands& commands) {
  auto* command =
      parser.add_subcommand("run", "Consume and apply messages until SIGTERM or SIGINT");
  const auto config = add_config_arguments(*command);
  config->read_elsewhere = true;
  command
      ->add_option("--default", config->defaults,
                   "Default of an option that the configuration does not set; repeatable")
      ->one_value_each()
      ->type_name("KEY=VALUE");
  const auto drain = std::make_shared<bool>(false);
  command->add_flag("--drain", *drain,
                    "Exit once every partition reaches the end offset it had at startup");
  command->footer(exit_status_text(
      {{"0", "stopped or drained; all in-flight messages finished"},
       {"1", "cannot continue; the last log line contains the reason"},
       {"2", "usage or configuration error; nothing was changed"},
       {"4", "drained, but a partition is halted, or is paused before its end offset"},
       {"5",
        "shutdown_timeout expired; in-flight messages were abandoned and will be processed again"},
       {"6",
        "a handler did not return and could not be interrupted; its message will be processed "
        "again"},
       {"130", "second SIGINT; stopped immediately"},
       {"143", "second SIGTERM; stopped immediately"}},
      "Every exit is safe: unfinished messages are processed again"));
  commands.set_action(command, [&commands, config, drain] {
    const auto read = [config, drain](config::Files& files) {
      auto options = config->load(&files);
      options.consumer.drain = options.consumer.drain || *drain;
      return options;
    };
    const auto& program = commands.program();
    return run_with_reload(program, read, [&](Reload& reload) { return run(program, reload); });
  });
}

}  // namespace pawl::cli
