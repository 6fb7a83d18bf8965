#include <fmt/format.h>

#include <csignal>

#include "cli/commands.hpp"
#include "cli/config_arguments.hpp"
#include "cli/stop_signals.hpp"
#include "cli/version.hpp"
#include "ops/log_observer.hpp"
#include "pawl/consumer.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

int run(const Program& program, Options options) {
  StopSignals::block();
  const auto log = std::make_shared<ops::LogObserver>(options);
  Consumer consumer(options, program.registry, {log});
  const StopSignals signals([&](int signal) {
    log->stopping(signal == SIGINT ? "SIGINT" : "SIGTERM");
    consumer.stop();
  });
  log->starting(fmt::format("{} (pawl {})", program.name, pawl_version()), options);
  try {
    const auto result = consumer.run();
    log->ended(result);
    return static_cast<int>(result);
  } catch (const FatalError& error) {
    log->failed(error.what());
    return static_cast<int>(RunResult::kFatal);
  }
}

}  // namespace

void add_run(CLI::App& parser, Commands& commands) {
  auto* command = parser.add_subcommand("run", "Consume until stopped");
  const auto config = add_config_arguments(*command);
  const auto drain = std::make_shared<bool>(false);
  command->add_flag("--drain", *drain,
                    "End once every partition has reached the end it had at start");
  commands.set_action(command, [&commands, config, drain] {
    auto options = config->load();
    options.consumer.drain = options.consumer.drain || *drain;
    return run(commands.program(), std::move(options));
  });
}

}  // namespace pawl::cli
