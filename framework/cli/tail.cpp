// `tail`: the events of a consumer, line by line, as they happen.
#include "cli/tail.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

#include "cli/commands.hpp"
#include "cli/status_source.hpp"
#include "cli/stop_signals.hpp"
#include "cli/tail_messages.hpp"
#include "config/units.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "ledger/instant.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kShortestInterval{100};
constexpr milliseconds kLongestTime{24 * 3600000LL};

struct Arguments {
  std::string topic;
  std::optional<std::int32_t> partition;
  std::string interval = "1s";
  std::string time;  ///< empty: until Ctrl-C
  bool once = false;
  bool messages = false;
  bool values = false;
  bool json = false;
};

milliseconds time_of(const std::string& option, const std::string& text) {
  const auto time = config::parse_duration(text);
  if (!time || *time < kShortestInterval || *time > kLongestTime) {
    throw BadCall(fmt::format("invalid value for {}: \"{}\". Use a duration from 100ms to 24h",
                              option, text));
  }
  return *time;
}

class Tail {
 public:
  Tail(const Options& options, const Registry& registry, const Arguments& arguments)
      : options_(options), arguments_(arguments), source_(options) {
    if (arguments.messages)
      messages_.emplace(options, registry, arguments.values);
  }

  int run() {
    const auto interval = time_of("--interval", arguments_.interval);
    const auto end = arguments_.once           ? Clock::now() + interval
                     : arguments_.time.empty() ? Clock::time_point::max()
                                               : Clock::now() + time_of("--for", arguments_.time);
    // Looking changes nothing, so it may end in the middle of a look; not in the middle of a line.
    const StopSignals signals([this](int) {
      const std::scoped_lock lock(output_);
      std::cout.flush();
      std::_Exit(kDone);
    });
    auto before = first_look();
    tell(beginning(before));
    // The first look has no other to be compared with.
    if (!before.status.postgres_problem.empty() || !before.status.kafka_problem.empty())
      tell(difference({}, servers_of(before)));
    while (std::cout && Clock::now() < end) {
      std::this_thread::sleep_for(std::min<Clock::duration>(interval, end - Clock::now()));
      auto next = look();
      auto lines = difference(before, next);
      add_messages(lines);
      tell(lines);
      before = remembered(std::move(before), std::move(next));
    }
    // Whoever read the output is gone.
    return std::cout ? kDone : kFailed;
  }

 private:
  static TailLook servers_of(const TailLook& look) {
    TailLook servers;
    servers.status.now_ms = look.status.now_ms;
    servers.status.postgres_problem = look.status.postgres_problem;
    servers.status.postgres_answers = look.status.postgres_answers;
    servers.status.kafka_problem = look.status.kafka_problem;
    return servers;
  }

  static std::vector<TailLine> beginning(const TailLook& look) {
    const auto& status = look.status;
    TailLine line{ledger::to_string(ledger::Instant(milliseconds(status.now_ms))), "tail_started",
                  std::nullopt, verdict_of(status)};
    line.subject = status.group;
    line.details = {{"group", status.group}, {"verdict", verdict_of(status)}};
    return {line};
  }

  /// Events count from before it, so that none is lost in between: one that comes meanwhile is in
  /// the status, and is told by the next look again.
  TailLook first_look() {
    TailLook events;
    look_at_events(events);
    if (events.status.postgres_problem.empty() && !events_)
      begins_ = ledger::RecentEvents::Begin::kWithAll;
    TailLook look{source_.look(StatusSource::AwayKafka::kSpare), {}};
    keep_only(look, arguments_.topic, arguments_.partition);
    return look;
  }

  TailLook look() {
    TailLook look{source_.look(StatusSource::AwayKafka::kSpare), {}};
    if (look.status.postgres_problem.empty() && look.status.known)
      look_at_events(look);
    keep_only(look, arguments_.topic, arguments_.partition);
    return look;
  }

  void look_at_events(TailLook& look) {
    try {
      if (!session_)
        session_ = connect_database(options_);
      if (!events_) {
        const auto consumer = ledger::find_consumer(*session_, options_.postgres.schema,
                                                    options_.kafka.cluster, options_.kafka.group);
        if (consumer)
          events_.emplace(options_.postgres.schema, consumer->id, begins_);
      }
      if (events_)
        look.events = events_->look(*session_);
      return;
    } catch (const FatalError& error) {
      look.status.postgres_problem = error.what();
    } catch (const postgres::Error& error) {
      look.status.postgres_problem = error.what();
    } catch (const postgres::InDoubt& error) {
      look.status.postgres_problem = error.what();
    }
    session_.reset();
  }

  void add_messages(std::vector<TailLine>& lines) {
    if (!messages_)
      return;
    std::vector<TailLine> all;
    for (auto& line : lines) {
      all.push_back(std::move(line));
      // The line may move when others are added.
      const auto advanced = all.back();
      for (auto& message : messages_->read(advanced))
        all.push_back(std::move(message));
    }
    lines = std::move(all);
  }

  void tell(const std::vector<TailLine>& lines) {
    const std::scoped_lock lock(output_);
    const auto terminal = terminal_of(STDOUT_FILENO);
    for (const auto& line : lines)
      std::cout << (arguments_.json ? line_json(line) : line_text(line, terminal)) << '\n';
    std::cout.flush();
  }

  const Options& options_;
  const Arguments& arguments_;
  StatusSource source_;
  std::unique_ptr<postgres::Session> session_;
  std::optional<ledger::RecentEvents> events_;
  ledger::RecentEvents::Begin begins_ = ledger::RecentEvents::Begin::kNow;
  std::optional<PassedMessages> messages_;
  std::mutex output_;
};

}  // namespace

void add_tail(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand("tail", "Follow processing live");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-t,--topic", arguments->topic, "Only this topic")->type_name("TOPIC");
  command->add_option("-p,--partition", arguments->partition, "Only this partition of the topic")
      ->not_negative()
      ->type_name("P");
  command->add_option("--interval", arguments->interval, "Time between two samples")
      ->type_name("DURATION")
      ->shows_default();
  auto* time = command->add_option("--for", arguments->time, "Exit after this time");
  time->type_name("DURATION");
  command->add_flag("--once", arguments->once, "Exit after the second sample");
  command->add_flag("--messages", arguments->messages,
                    "Also read processed records from Kafka: up to 20 per partition and sample");
  command->add_flag("--values", arguments->values, "With --messages: also show truncated values");
  command->add_flag("--json", arguments->json, "Print JSON, one object per line");
  commands.set_action(command, [&commands, config, arguments] {
    if (arguments->partition && arguments->topic.empty())
      throw BadCall("--partition requires --topic");
    if (arguments->values && !arguments->messages)
      throw BadCall("--values requires --messages");
    if (arguments->once && !arguments->time.empty())
      throw BadCall("--once and --for exclude each other. Use one of them");
    // Before librdkafka starts its threads.
    StopSignals::block();
    const auto options = config->load();
    return Tail(options, commands.program().registry, *arguments).run();
  });
}

}  // namespace pawl::cli
