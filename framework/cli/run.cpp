#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "cli/alerting.hpp"
#include "cli/commands.hpp"
#include "cli/programs.hpp"
#include "cli/stop_signals.hpp"
#include "cli/version.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
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
    throw BadCall(fmt::format("{}; correct [kafka.librdkafka]", error.what()));
  }
}

int run(const Program& program, const Options& options) {
  require_programs(options);
  StopSignals::block();
  const auto log = std::make_shared<ops::LogObserver>(options);
  const auto alerts = make_alerts(options, log);
  std::vector<std::shared_ptr<Observer>> observers{log};
  if (alerts)
    observers.push_back(alerts);
  const auto consumer = make_consumer(options, program.registry, std::move(observers));
  const StopSignals signals([&](int signal) {
    log->stopping(signal == SIGINT ? "SIGINT" : "SIGTERM");
    consumer->stop();
  });
  log->starting(fmt::format("{} (pawl {})", program.name, pawl_version()), options,
                program.registry, *consumer);
  try {
    const auto result = consumer->run();
    log->ended(result);
    return end_with(static_cast<int>(result), alerts);
  } catch (const FatalError& error) {
    log->failed(error.what());
    return end_with(static_cast<int>(RunResult::kFatal), alerts);
  } catch (const std::exception& error) {
    // The engine was left in the middle of something, and may have threads that wait for it.
    // Whatever is not committed runs again.
    log->failed(fmt::format("unexpected: {}; ending now, please report this", error.what()));
    ::_exit(kFailed);
  }
}

}  // namespace

void add_run(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand("run", "Consume until SIGTERM or SIGINT");
  const auto config = add_config_arguments(*command);
  const auto drain = std::make_shared<bool>(false);
  command->add_flag("--drain", *drain,
                    "End once every partition has reached the end it had at start");
  commands.set_action(command, [&commands, config, drain] {
    auto options = config->load();
    options.consumer.drain = options.consumer.drain || *drain;
    return run(commands.program(), options);
  });
}

}  // namespace pawl::cli
