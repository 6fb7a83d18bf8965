// `partitions pause|resume|skip` (`peek` is partitions_peek.cpp): change partitions while they run.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/json.hpp"
#include "console/operator_change.hpp"
#include "console/partition_changes.hpp"
#include "console/partition_view.hpp"
#include "ledger/rows.hpp"

namespace pawl::cli {
namespace {

using ledger::PartitionState;

struct Reason {
  std::string text;
  bool json = false;
};

const char* word_of(StateChange change) {
  switch (change) {
    case StateChange::kDone:
      return "changed";
    case StateChange::kWasSo:
      return "unchanged";
    case StateChange::kChangedMeanwhile:
      break;
  }
  return "conflict";
}

/// A resumed partition without an owner is not processed yet.
void print_steps_to_acquire(const InvocationOptions& invocation) {
  std::cout << fmt::format(
      "Check whether a process runs. If none does, start one:\n"
      "  {}\n"
      "  {}\n",
      command_text(invocation, "status"), command_text(invocation, "run"));
}

/// Pause and resume differ in the state, and in what a partition without an owner requires.
int set_state(const Options& options, const PartitionArguments& partitions, PartitionState state,
              const Reason& reason) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  bool changed_meanwhile = false;
  bool lacks_owner = false;
  auto json = Json::array();
  for (const auto& row : choose_rows(*session, options, consumer, partitions)) {
    const auto name = name_of(row.partition);
    const auto change = set_partition_state(*session, options, consumer, row, state, reason.text);
    json.push_back(
        {{"topic", row.partition.topic},
         {"partition", row.partition.partition},
         {"result", word_of(change)},
         {"previous_state", ledger::to_string(row.state)},
         {"state", change == StateChange::kChangedMeanwhile ? Json(nullptr)
                                                            : Json(ledger::to_string(state))},
         {"owner", or_null(row.owned() ? row.owner : "")},
         {"offset", row.stored.next()}});
    if (reason.json && change != StateChange::kChangedMeanwhile)
      continue;
    switch (change) {
      case StateChange::kDone:
      case StateChange::kWasSo:
        lacks_owner = lacks_owner || !row.owned();
        std::cout << stored_state_text(row, state) << '\n';
        break;
      case StateChange::kChangedMeanwhile:
        changed_meanwhile = true;
        std::cerr << fmt::format(
            "error: {} is no longer {}, so nothing was changed there. Check:\n"
            "  {}\n",
            name, ledger::to_string(row.state), command_text(options.invocation, "status"));
        break;
    }
  }
  if (lacks_owner && state == PartitionState::kRunning)
    print_steps_to_acquire(options.invocation);
  if (reason.json)
    std::cout << indented({{"partitions", std::move(json)}}) << '\n';
  return changed_meanwhile ? kFailed : kDone;
}

int skip(const Options& options, const PartitionArguments& partitions, std::int64_t offset,
         const Reason& reason) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const auto row = choose_rows(*session, options, consumer, partitions).front();
  const auto kept = skip_message(*session, options, consumer, row, offset, reason.text);
  if (reason.json) {
    std::cout << indented({{"topic", row.partition.topic},
                           {"partition", row.partition.partition},
                           {"skipped_offset", offset},
                           {"state", ledger::to_string(row.state == PartitionState::kPaused
                                                           ? PartitionState::kPaused
                                                           : PartitionState::kRunning)}})
              << '\n';
    return kDone;
  }
  std::cout << fmt::format("{} is skipped. {}. The partition {}.\n  {}\n",
                           name_of(row.partition, offset), kept,
                           row.state == PartitionState::kPaused ? "stays paused" : "continues",
                           command_text(options.invocation, "skipped list"));
  return kDone;
}

void add_state_command(Command& parent, Commands& commands, const std::string& name,
                       const std::string& description, PartitionState state) {
  auto* command = parent.add_subcommand(name, description);
  const auto config = add_config_arguments(*command);
  const auto partitions = add_partition_arguments(*command, true);
  const auto reason = std::make_shared<Reason>();
  command->add_option("--because", reason->text, "Reason, stored in the history")->reason();
  command->add_json_flag(reason->json);
  commands.set_action(command, [config, partitions, reason, state] {
    partitions->require_choice();
    return set_state(config->load(), *partitions, state, *reason);
  });
}

}  // namespace

void add_partitions(Command& parser, Commands& commands) {
  auto* partitions =
      parser.add_subcommand("partitions", "Pause or resume partitions; inspect or skip a message");
  add_state_command(*partitions, commands, "pause",
                    "Pause partitions until they are resumed; no restart is required",
                    PartitionState::kPaused);
  add_state_command(*partitions, commands, "resume", "Resume paused or halted partitions",
                    PartitionState::kRunning);

  auto* command = partitions->add_subcommand(
      "skip", "Skip the next message of a partition; it is stored in skipped_messages");
  const auto config = add_config_arguments(*command);
  const auto chosen = add_partition_arguments(*command, false);
  const auto offset = std::make_shared<std::int64_t>(-1);
  const auto reason = std::make_shared<Reason>();
  command->add_option("--offset", *offset, "Offset of the message, as in the halt")
      ->required()
      ->not_negative()
      ->type_name("N");
  command->add_option("--because", reason->text, "Reason, stored with the message")
      ->required()
      ->reason();
  command->add_json_flag(reason->json);
  commands.set_action(command, [config, chosen, offset, reason] {
    return skip(config->load(), *chosen, *offset, *reason);
  });
  add_partitions_peek(*partitions, commands);
}

}  // namespace pawl::cli
