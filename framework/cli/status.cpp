// `status`: one screen for the engineer on call.
#include "cli/status.hpp"

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

/// Between the first two samples, which the first rates come from.
constexpr milliseconds kFirstInterval{1000};

struct Arguments {
  std::string watch;  ///< empty: once
  std::string interval = "1s";
  std::vector<std::string> fail_on;
  bool exit_code = false;
  bool json = false;
  bool all = false;
  bool partitions = false;
};

milliseconds interval_of(const std::string& option, const std::string& text) {
  const auto interval = config::parse_duration(text);
  if (!interval || *interval < kShortestInterval || *interval > kLongestInterval) {
    throw BadCall(
        fmt::format("invalid value for {}: \"{}\". Use a duration from 100ms to 1h", option, text));
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
         (asked("stalled") && counts.stalled > 0) || (asked("blocked") && counts.blocked > 0);
}

/// Zero: one sample is enough, without rates.
milliseconds between_samples(const std::string& text) {
  const auto interval = config::parse_duration(text);
  return interval && interval->count() == 0 ? milliseconds(0) : interval_of("--interval", text);
}

StatusView view_of(const Terminal& terminal, const Arguments& arguments) {
  return {terminal, arguments.all, arguments.partitions, false};
}

int look_once(const Options& options, const Arguments& arguments) {
  const auto interval = between_samples(arguments.interval);
  StatusSource source(options);
  auto status = source.look();
  if (interval.count() > 0 && status.postgres_problem.empty()) {
    std::this_thread::sleep_for(interval);
    status = source.look();
  }
  source.find_oldest(status);
  std::cout << (arguments.json
                    ? status_json(status, true) + '\n'
                    : status_text(status, view_of(terminal_of(STDOUT_FILENO), arguments)));
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
    std::cerr << fmt::format("error: this status is incomplete: {}\n", fmt::join(unseen, "; "));
    return kFailed;
  }
  return fails(status, arguments) ? kNeedsSomebody : kDone;
}

/// Samples again and again, and shows the latest sample as the keys ask for it.
class Watch {
 public:
  Watch(const Options& options, const Arguments& arguments)
      : arguments_(arguments),
        interval_(interval_of("--watch", arguments.watch)),
        source_(options),
        view_(view_of({}, arguments)) {}

  int run() {
    // Sampling changes nothing, so it may end in the middle of a sample; not in the middle of a
    // line.
    const StopSignals signals([this](int) {
      const std::scoped_lock lock(output_);
      leave();
      std::_Exit(kDone);
    });
    if (!arguments_.json && ::isatty(STDOUT_FILENO) == 1)
      keys_.emplace();
    // Rates come from two samples.
    auto status = source_.look();
    std::this_thread::sleep_for(std::min(interval_, kFirstInterval));
    while (true) {
      if (!paused_) {
        status = source_.look();
        source_.find_oldest(status);
      }
      if (!show(status))
        return kFailed;
      if (wait(status) == Next::kQuit)
        return kDone;
    }
  }

 private:
  enum class Next { kSample, kQuit };

  /// Whether the output is still read.
  bool show(const Status& status) {
    const std::scoped_lock lock(output_);
    if (arguments_.json) {
      std::cout << status_json(status, false) << std::endl;
      return static_cast<bool>(std::cout);
    }
    view_.terminal = screen_.terminal();
    const auto blocks = status_blocks(status, view_);
    screen_.show(view_.terminal, fitted(blocks, view_.terminal, keys_ ? hint() : std::string()));
    return static_cast<bool>(std::cout);
  }

  [[nodiscard]] std::string hint() const {
    auto every = paused_ ? std::string("paused") : "every " + config::format_duration(interval_);
    if (!keys_->available())
      return every;
    return fmt::format("{}   q quit   p {}   t {}   space {}", every,
                       view_.problems_only ? "all" : "problems only",
                       view_.partitions ? "by topic" : "by partition",
                       paused_ ? "continue" : "pause");
  }

  /// Until the next sample is due; a key that changes the view is obeyed at once.
  Next wait(const Status& status) {
    const auto due = std::chrono::steady_clock::now() + interval_;
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(due - std::chrono::steady_clock::now());
      if (left.count() <= 0)
        return Next::kSample;
      if (!keys_) {
        std::this_thread::sleep_for(left);
        return Next::kSample;
      }
      switch (keys_->wait(left).value_or('\0')) {
        case 'q':
          return Next::kQuit;
        case 'p':
          view_.problems_only = !view_.problems_only;
          break;
        case 't':
          view_.partitions = !view_.partitions;
          break;
        case ' ':
          paused_ = !paused_;
          break;
        default:
          continue;
      }
      (void)show(status);
    }
  }

  void leave() {
    screen_.leave();
    if (keys_)
      keys_->restore();
    std::cout.flush();
  }

  const Arguments& arguments_;
  const milliseconds interval_;
  StatusSource source_;
  StatusView view_;
  Screen screen_{STDOUT_FILENO};
  std::optional<Keys> keys_;  ///< nullopt: the output is not a screen
  bool paused_ = false;
  std::mutex output_;
};

int status(const Options& options, const Arguments& arguments) {
  if (arguments.watch.empty())
    return look_once(options, arguments);
  if (arguments.exit_code || !arguments.fail_on.empty())
    throw BadCall("--watch continues until Ctrl-C; omit --exit-code and --fail-on");
  return Watch(options, arguments).run();
}

}  // namespace

void add_status(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand(
      "status", "Show problems, what to do about them, lag, and dead letters");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--watch", arguments->watch, "Refresh every DURATION until Ctrl-C")
      ->value_or("2s")
      ->type_name("[DURATION]");
  command
      ->add_option("--interval", arguments->interval,
                   "Time between the two samples that RATE and ETA come from; 0s: one sample")
      ->type_name("DURATION")
      ->shows_default();
  command->add_flag(
      "--exit-code", arguments->exit_code,
      "Exit with 3 if attention is required (halted, topic without offsets, late outbox, ...)");
  command
      ->add_option("--fail-on", arguments->fail_on,
                   "Exit with 3 also for dead-letters, unowned, paused, stalled, retrying, "
                   "probation, blocked, outbox")
      ->separated_by_commas()
      ->one_of({"halted", "dead-letters", "unowned", "paused", "stalled", "retrying", "probation",
                "blocked", "outbox"})
      ->type_name("WHAT[,WHAT]");
  command->add_flag("--json", arguments->json, "Print JSON; with --watch one object per line");
  command->add_flag("--all", arguments->all, "Show every problem, topic, and dead-letter handler");
  command->add_flag("--partitions", arguments->partitions,
                    "Show each partition with OFFSET (of the next message), END, LAG, and OWNER");
  command->exit_status({{"0", "success"},
                        {"1", "failure; the reason is on stderr"},
                        {"2", "usage or configuration error; nothing was changed"},
                        {"3", "attention required (--exit-code, --fail-on)"}});
  commands.set_action(command, [config, arguments] {
    // Before librdkafka starts its threads.
    if (!arguments->watch.empty())
      StopSignals::block();
    const auto options = config->load();
    return status(options, *arguments);
  });
}

}  // namespace pawl::cli
