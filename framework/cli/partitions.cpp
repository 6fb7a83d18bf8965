// `partitions pause|resume|skip` (`peek` is partitions_peek.cpp): what an operator does to single
// partitions while they run.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/operator_change.hpp"
#include "kafka/fetch_one.hpp"
#include "ledger/rows.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

using ledger::PartitionState;

constexpr std::chrono::milliseconds kFetchTimeout{15000};

std::string name_of(const TopicPartition& partition) {
  return fmt::format("{} [{}]", partition.topic, partition.partition);
}

/// Pause and resume differ in the state alone.
int set_state(const Options& options, const PartitionArguments& partitions, PartitionState state,
              const std::string& reason) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::OperatorCommands commands(options.postgres.schema, consumer.id);
  for (const auto& row : choose_rows(*session, options, consumer, partitions)) {
    if (row.state == state) {
      std::cout << fmt::format("{} is {} already\n", name_of(row.partition),
                               ledger::to_string(state));
      continue;
    }
    ledger::OperatorChange change;
    change.partition = row.partition;
    change.state = state;
    change.action = state == PartitionState::kPaused ? "pause" : "resume";
    change.reason = reason;
    change_register(row.partition, [&] { commands.change(*session, change); });
    std::cout << fmt::format("{} was {}, is {}; next offset {}\n", name_of(row.partition),
                             ledger::to_string(row.state), ledger::to_string(state),
                             row.stored.next());
  }
  return kDone;
}

kafka::Record next_record(const kafka::Client& client, const ledger::RegisterRow& row) {
  auto record = kafka::fetch_one(client, row.partition, row.stored.next(), kFetchTimeout);
  if (!record) {
    throw BadCall(fmt::format("{} is at its end: there is no message behind offset {} to skip",
                              name_of(row.partition), row.stored.last()));
  }
  return *std::move(record);
}

int skip(const Options& options, const PartitionArguments& partitions, std::int64_t offset,
         const std::string& reason) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const auto row = choose_rows(*session, options, consumer, partitions).front();
  if (offset <= row.stored.last()) {
    throw BadCall(fmt::format("--offset {}: {} is past it already, its stored offset is {}", offset,
                              name_of(row.partition), row.stored.last()));
  }
  // Outlives the record: a client does not end while one of its messages is held.
  const auto client = make_client(options);
  require_same_cluster(options, consumer.kafka_cluster_id, client->cluster_id(kKafkaTimeout));
  const auto record = next_record(*client, row);
  if (record.offset() != offset) {
    throw BadCall(fmt::format(
        "--offset {}: the next message of {} is at offset {}; only that one can be skipped", offset,
        name_of(row.partition), record.offset()));
  }
  const ledger::OperatorCommands commands(options.postgres.schema, consumer.id);
  const ledger::OperatorSkip change{row.partition, row.stored, row.epoch, reason};
  change_register(row.partition,
                  [&] { commands.skip(*session, change, record.view(row.partition.topic, "")); });
  std::cout << fmt::format(
      "{} offset {} is skipped; the message is kept, `skipped list` shows it. {}\n",
      name_of(row.partition), offset,
      row.state == PartitionState::kPaused ? "The partition stays paused."
                                           : "The partition goes on after it.");
  return kDone;
}

void add_state_command(Command& parent, Commands& commands, const std::string& name,
                       const std::string& description, PartitionState state) {
  auto* command = parent.add_subcommand(name, description);
  const auto config = add_config_arguments(*command);
  const auto partitions = add_partition_arguments(*command, true);
  const auto reason = std::make_shared<std::string>();
  command->add_option("--because,--reason", *reason, "Why; kept in the history")->type_name("TEXT");
  commands.set_action(command, [config, partitions, reason, state] {
    partitions->require_choice();
    return set_state(config->load(), *partitions, state, *reason);
  });
}

}  // namespace

void add_partitions(Command& parser, Commands& commands) {
  auto* partitions =
      parser.add_subcommand("partitions", "Pause, resume, look at or skip a message; live");
  add_state_command(*partitions, commands, "pause", "Stop processing until resumed",
                    PartitionState::kPaused);
  add_state_command(*partitions, commands, "resume", "Go on after a pause or a halt",
                    PartitionState::kRunning);

  auto* command = partitions->add_subcommand(
      "skip", "Leave out the message that comes next; it is kept in skipped_messages");
  const auto config = add_config_arguments(*command);
  const auto chosen = add_partition_arguments(*command, false);
  const auto offset = std::make_shared<std::int64_t>(-1);
  const auto reason = std::make_shared<std::string>("skipped by an operator");
  command->add_option("--offset", *offset, "Its offset, as the halt names it")
      ->required()
      ->not_negative()
      ->type_name("N");
  command->add_option("--because,--reason", *reason, "Why; kept beside the message")
      ->type_name("TEXT");
  commands.set_action(command, [config, chosen, offset, reason] {
    return skip(config->load(), *chosen, *offset, *reason);
  });
  add_partitions_peek(*partitions, commands);
}

}  // namespace pawl::cli
