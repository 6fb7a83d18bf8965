// `dashboard`: the web page for people, and nothing else.
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

#include "cli/commands.hpp"
#include "cli/monitoring.hpp"
#include "cli/programs.hpp"
#include "cli/service.hpp"
#include "cli/stop_signals.hpp"
#include "config/listen_address.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"

namespace pawl::cli {
namespace {

/// Nobody but this machine; beside the port of `run` in the examples.
constexpr const char* kListen = "127.0.0.1:9465";

int serve(const Program& program, const Options& options, const std::string& listen) {
  const auto address = config::parse_listen_address(listen);
  if (!address) {
    throw BadCall(
        fmt::format("--listen {}: not a numeric address with a port. Use, for example, {} or "
                    "[::1]:9465",
                    listen, kListen));
  }
  require_programs(options);
  StopSignals::block();
  auto dashboard = std::make_unique<dashboard::Dashboard>(options, program.registry);
  dashboard->look();
  Monitoring monitoring(
      *address,
      [](const ops::HttpRequest&) {
        return ops::HttpAnswer{404, "text/plain; charset=utf-8",
                               "that is served by `run` and `relay`, at monitoring.listen\n"};
      },
      std::move(dashboard), "--listen");
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;  // guarded by mutex
  {
    Service service(ops::ServiceManager::of_environment(),
                    {[] { return std::chrono::milliseconds{0}; },
                     [&] { return fmt::format("the dashboard is at http://{}/", listen); }});
    const StopSignals signals([&](int) {
      service.stopping();
      const std::scoped_lock lock(mutex);
      stopped = true;
      changed.notify_all();
    });
    std::cout << fmt::format("The dashboard of {} is at http://{}/ until SIGTERM or SIGINT{}\n",
                             options.kafka.group, listen,
                             options.monitoring.actions_token.empty() &&
                                     options.monitoring.trusted_proxy.empty()
                                 ? "; it is read-only (monitoring.actions_token)"
                                 : "")
              << std::flush;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopped; });
  }
  // What a replay has not committed is rolled back, and its letter is as it was.
  if (!monitoring.finish())
    ::_exit(kDone);
  return kDone;
}

}  // namespace

void add_dashboard(Command& parser, Commands& commands) {
  auto* command =
      parser.add_subcommand("dashboard", "Serve the web dashboard until SIGTERM or SIGINT");
  const auto config = add_config_arguments(*command);
  config->read_elsewhere = true;
  const auto listen = std::make_shared<std::string>(kListen);
  command
      ->add_option("--listen", *listen, "Numeric address and port; monitoring.listen is not used")
      ->shows_default()
      ->type_name("ADDRESS:PORT");
  commands.set_action(command, [&commands, config, listen] {
    return serve(commands.program(), config->load(), *listen);
  });
}

}  // namespace pawl::cli
