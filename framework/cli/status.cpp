// `status`: one screen for whoever is on call.
#include "cli/status.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "cli/commands.hpp"
#include "cli/screen.hpp"
#include "cli/status_source.hpp"
#include "cli/stop_signals.hpp"
#include "config/units.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"

namespace pawl::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestInterval{100};
constexpr milliseconds kLongestInterval{3600000};

struct Arguments {
  std::string watch;     ///< empty: one look
  std::string interval;  ///< empty: no second look for rates
  std::vector<std::string> fail_on;
  bool exit_code = false;
  bool json = false;
  bool all = false;
};

milliseconds interval_of(const std::string& option, const std::string& text) {
  const auto interval = config::parse_duration(text);
  if (!interval || *interval < kShortestInterval || *interval > kLongestInterval) {
    throw BadCall(
        fmt::format("{} {}: not a time between 100ms and 1h; write it as 2s or 1m", option, text));
  }
  return *interval;
}

/// Whether the look has something that --exit-code and --fail-on ask for.
bool fails(const Status& status, const Arguments& arguments) {
  const auto counts = totals_of(status).counts.value_or(StatusCounts{});
  const auto asked = [&](const char* what) {
    return std::find(arguments.fail_on.begin(), arguments.fail_on.end(), what) !=
           arguments.fail_on.end();
  };
  const bool any = arguments.exit_code || !arguments.fail_on.empty();
  const bool set_apart = status.outbox && status.outbox->set_apart > 0;
  return (any && needs_somebody(status)) || (asked("outbox") && set_apart) ||
         (asked("dead-letters") && (counts.dead_letters > 0 || counts.parked_messages > 0)) ||
         (asked("unowned") && counts.unowned > 0) || (asked("paused") && counts.paused > 0) ||
         (asked("retrying") && counts.retrying > 0) ||
         (asked("probation") && counts.on_probation > 0) ||
         (asked("stalled") && counts.stalled > 0);
}

int look_once(const Options& options, const Arguments& arguments) {
  StatusSource source(options);
  auto status = source.look();
  if (!arguments.interval.empty() && status.postgres_problem.empty()) {
    std::this_thread::sleep_for(interval_of("--interval", arguments.interval));
    status = source.look();
  }
  std::cout << (arguments.json ? status_json(status, true) + '\n'
                               : status_text(status, arguments.all));
  std::vector<std::string> unseen;
  for (const auto& problem : {status.postgres_problem, status.kafka_problem}) {
    if (!problem.empty())
      unseen.push_back(problem);
  }
  for (const auto* topics : {&status.refused_topics, &status.ambiguous_topics}) {
    for (const auto& [topic, why] : *topics)
      unseen.push_back(why);
  }
  if (!unseen.empty()) {
    std::cerr << fmt::format("could not see everything: {}\n", fmt::join(unseen, "; "));
    return kFailed;
  }
  return fails(status, arguments) ? kNeedsSomebody : kDone;
}

int watch(const Options& options, const Arguments& arguments) {
  const auto interval = interval_of("--watch", arguments.watch);
  // Looking changes nothing, so it may end in the middle of a look; not in the middle of a line.
  std::mutex output_mutex;
  const StopSignals signals([&output_mutex](int) {
    const std::scoped_lock lock(output_mutex);
    std::cout.flush();
    std::_Exit(kDone);
  });
  StatusSource source(options);
  Screen screen(STDOUT_FILENO);
  while (true) {
    const auto status = source.look();
    {
      const std::scoped_lock lock(output_mutex);
      if (arguments.json) {
        std::cout << status_json(status, false) << std::endl;
      } else {
        screen.show(
            fmt::format("{:%Y-%m-%dT%H:%M:%S}Z, every {}\n{}", fmt::gmtime(status.now_ms / 1000),
                        config::format_duration(interval), status_text(status, arguments.all)));
      }
      // Whoever read the output is gone.
      if (!std::cout)
        return kFailed;
    }
    std::this_thread::sleep_for(interval);
  }
}

int status(const Options& options, const Arguments& arguments) {
  if (arguments.watch.empty())
    return look_once(options, arguments);
  if (arguments.exit_code || !arguments.fail_on.empty() || !arguments.interval.empty())
    throw BadCall("--watch goes on until Ctrl-C; leave out --exit-code, --fail-on and --interval");
  return watch(options, arguments);
}

}  // namespace

void add_status(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "status", "Show problems, what to do about them, lag, and dead letters");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--watch", arguments->watch, "Refresh every INTERVAL until Ctrl-C")
      ->value_or("2s")
      ->type_name("[INTERVAL]");
  command->add_option("--interval", arguments->interval, "Time between the two samples of a rate")
      ->type_name("DURATION");
  command->add_flag(
      "--exit-code", arguments->exit_code,
      "Exit with 3 if attention is required (halted, topic without offsets, late outbox, ...)");
  command
      ->add_option("--fail-on", arguments->fail_on,
                   "Exit with 3 also for dead-letters, unowned, paused, stalled, retrying, "
                   "probation, outbox")
      ->separated_by_commas()
      ->one_of({"halted", "dead-letters", "unowned", "paused", "stalled", "retrying", "probation",
                "outbox"})
      ->type_name("WHAT[,WHAT]");
  command->add_flag("--json", arguments->json, "Print JSON; with --watch one object per line");
  command->add_flag("--all", arguments->all, "Show all partitions, problems, and dead letters");
  commands.set_action(command, [config, arguments] {
    // Before librdkafka starts its threads.
    if (!arguments->watch.empty())
      StopSignals::block();
    const auto options = config->load();
    return status(options, *arguments);
  });
}

}  // namespace pawl::cli
