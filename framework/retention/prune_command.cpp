// `prune`: deletes expired keys and records, as a running consumer does.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <random>
#include <thread>

#include "config/units.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/json.hpp"
#include "console/operator_change.hpp"
#include "console/table.hpp"
#include "pawl/errors.hpp"
#include "retention/pass.hpp"
#include "retention/prune_command.hpp"

namespace pawl::cli {
namespace {

using std::chrono::milliseconds;

/// Counting reads whole tables.
constexpr milliseconds kDryRunTimeout{std::chrono::hours(1)};

struct Arguments {
  std::string older_than;
  bool dry_run = false;
  bool json = false;
};

std::optional<milliseconds> older_than(const Arguments& arguments) {
  if (arguments.older_than.empty())
    return std::nullopt;
  const auto age = config::parse_duration(arguments.older_than);
  if (!age || *age < std::chrono::seconds{1}) {
    throw BadCall(
        fmt::format("invalid value for --older-than: \"{}\". Use a duration of at least 1s: 90s, "
                    "15m, 12h, or 7d",
                    arguments.older_than));
  }
  return age;
}

std::string when(const std::optional<ledger::Instant>& time) {
  return time ? ledger::to_string(*time) : "-";
}

Json time_or_null(const std::optional<ledger::Instant>& time) {
  return time ? Json(ledger::to_string(*time)) : Json(nullptr);
}

void print_json(const engine::RetentionReport& report, bool dry_run) {
  Json json;
  json["dry_run"] = dry_run;
  json["complete"] = !report.interrupted;
  json["keys"] = report.keys;
  json["keys_estimated"] = report.keys_estimated;
  json["dead_letters"] = report.letters;
  json["skipped_messages"] = report.skipped;
  json["outbox_discarded"] = report.discarded;
  json["lease_losses"] = report.losses;
  json["kafka_problem"] = or_null(report.kafka_problem);
  auto& scopes = json["scopes"] = Json::array();
  for (const auto& [scope, cutoff, kept, swept] : report.scopes) {
    scopes.push_back({{"scope", scope.name},
                      {"retention_ms", kept.count()},
                      {"keys_removed_before", time_or_null(cutoff.keys)},
                      {"blocked_by", or_null(cutoff.held_by)},
                      {"unusable_timestamp", or_null(cutoff.unusable_time)},
                      {"pruned_to", time_or_null(scope.pruned_to)}});
  }
  std::cout << indented(json) << '\n';
}

void print(const engine::RetentionReport& report, bool dry_run) {
  if (!report.scopes.empty()) {
    Table table(
        {{"SCOPE"}, {"RETENTION"}, {"REMOVABLE BEFORE"}, {"REMOVED BEFORE"}, {"BLOCKED BY"}});
    for (const auto& [scope, cutoff, kept, swept] : report.scopes) {
      table.add({scope.name, kept == milliseconds{0} ? "forever" : config::format_duration(kept),
                 when(cutoff.keys), when(scope.pruned_to),
                 cutoff.held_by.empty() ? "-" : cutoff.held_by});
    }
    std::cout << table.text() << '\n';
  }
  for (const auto& scope : report.scopes) {
    if (!scope.cutoff.unusable_time.empty())
      std::cout << engine::unusable_time_text(scope.cutoff.unusable_time) << '\n';
  }
  std::cout << fmt::format(
      "{} {}{}\n", dry_run ? "would remove" : "removed", engine::removed_text(report),
      report.interrupted ? ". Interrupted: repeat the command for the rest" : "");
}

std::string holder() {
  std::random_device random;
  return fmt::format("command:{}:{:08x}", ::getpid(), random());
}

int prune(const Options& options, const Arguments& arguments) {
  const auto age = older_than(arguments);
  auto settings = engine::pruning_settings(options);
  const auto first = connect_database(options);
  const auto consumer = require_consumer(*first, options);
  postgres::Session session(settings);
  if (arguments.dry_run)
    session.require_statement_timeout(kDryRunTimeout);
  const auto kafka = make_client(options);
  engine::RetentionPass pruning(
      options, consumer.id, *kafka, holder(),
      [](milliseconds time) {
        std::this_thread::sleep_for(time);
        return true;
      },
      age);
  const auto report = [&] {
    try {
      return pruning.run(session,
                         arguments.dry_run ? engine::PassMode::kDryRun : engine::PassMode::kAlways);
    } catch (const postgres::InDoubt& error) {
      throw FatalError(fmt::format("{}. Repeat the command to remove the rest", error.what()));
    }
  }();
  if (report.busy) {
    throw FatalError(
        "another process of this consumer is removing keys (see pawl.retention_state). No action "
        "needed. If that process crashed, its turn expires within 30 s");
  }
  if (!report.kafka_problem.empty()) {
    std::cerr << fmt::format(
        "Kafka is unreachable, so every partition is treated as if it had unprocessed messages: "
        "{}\n",
        report.kafka_problem);
  }
  if (arguments.json) {
    print_json(report, arguments.dry_run);
  } else {
    print(report, arguments.dry_run);
  }
  return report.interrupted ? kFailed : kDone;
}

}  // namespace

void add_prune(Command& parser, Commands& commands) {
  auto* command = parser.add_subcommand("prune", "Delete expired keys and records");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--older-than", arguments->older_than,
                   "Use this retention of keys instead of the configured one")
      ->type_name("DURATION");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Count what would be deleted without changing anything");
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return prune(config->load(), *arguments); });
}

}  // namespace pawl::cli
