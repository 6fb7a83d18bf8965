#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/json.hpp"
#include "console/kafka_look.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "engine/halt_rendering.hpp"
#include "ledger/register_view.hpp"
#include "ledger/rows.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::string topic;
  bool json = false;
};

/// The register, and what Kafka has; the latter may be unknown.
struct Picture {
  std::vector<ledger::RegisterRow> rows;
  KafkaLook kafka;
};

void ask_kafka(const Options& options, Picture& picture) {
  std::vector<TopicPartition> partitions;
  for (const auto& row : picture.rows)
    partitions.push_back(row.partition);
  if (partitions.empty())
    return;
  std::unique_ptr<kafka::Client> client;
  picture.kafka = look_at_kafka(options, client, partitions);
}

void print_json(const Options& options, const Picture& picture) {
  Json root;
  root["cluster"] = options.kafka.cluster;
  root["group"] = options.kafka.group;
  root["kafka_problem"] = or_null(picture.kafka.problem);
  auto& partitions = root["partitions"] = Json::array();
  for (const auto& row : picture.rows) {
    const auto end = picture.kafka.end_of(row.partition);
    Json entry;
    entry["topic"] = row.partition.topic;
    entry["partition"] = row.partition.partition;
    entry["end"] = or_null(end);
    entry["lag"] = or_null(lag_of(&row, end));
    describe(entry, row);
    entry["counted_from_offset"] = row.base_offset;
    entry["applied"] = row.applied;
    entry["duplicates"] = row.duplicates;
    entry["skipped"] = row.skipped;
    entry["unchecked"] = row.unchecked;
    partitions.push_back(std::move(entry));
  }
  std::cout << indented(root) << '\n';
}

void print_table(const Options& options, const Picture& picture) {
  using Align = Table::Align;
  if (picture.rows.empty()) {
    std::cout << fmt::format("No offset is stored for {}/{}: it has not processed a message yet.\n",
                             options.kafka.cluster, options.kafka.group);
    return;
  }
  Table table({{"TOPIC"},
               {"PARTITION", Align::kRight},
               {"STATE"},
               {"OFFSET", Align::kRight},
               {"END", Align::kRight},
               {"LAG", Align::kRight},
               {"EPOCH", Align::kRight},
               {"SINCE"},
               {"OWNER"}});
  for (const auto& row : picture.rows) {
    const auto end = picture.kafka.end_of(row.partition);
    table.add({row.partition.topic, std::to_string(row.partition.partition), state_text(row),
               offset_text(row), known_text(end), known_text(lag_of(&row, end)),
               std::to_string(static_cast<std::int64_t>(row.epoch)), date_time(row.state_since),
               owner_text(row)});
  }
  const auto columns = terminal_of(STDOUT_FILENO).columns;
  std::cout << table.text(columns);
  for (const auto& row : picture.rows) {
    const bool halted = row.state == ledger::PartitionState::kHalted;
    const auto reason =
        halted ? engine::halt_text(row.halt, options, row.partition) : row.operator_reason;
    if (row.state == ledger::PartitionState::kRunning || reason.empty())
      continue;
    const auto offset = row.halt.message_offset;
    std::cout << fmt::format("\n{} is {} since {}:\n  {}\n",
                             offset ? name_of(row.partition, *offset) : name_of(row.partition),
                             ledger::to_string(row.state), date_time(row.state_since),
                             wrapped(printable_lines(reason), columns, 2));
  }
}

int show(const Options& options, const Arguments& arguments) {
  const auto session = connect_database(options);
  const auto& schema = options.postgres.schema;
  Picture picture;
  if (const auto consumer =
          ledger::find_consumer(*session, schema, options.kafka.cluster, options.kafka.group)) {
    picture.rows = ledger::read_register(*session, schema, consumer->id, arguments.topic);
  }
  ask_kafka(options, picture);
  if (arguments.json) {
    print_json(options, picture);
  } else {
    print_table(options, picture);
  }
  if (!picture.kafka.problem.empty()) {
    std::cerr << "Kafka is unreachable, so END and LAG are unknown: " << picture.kafka.problem
              << '\n';
  }
  return kDone;
}

}  // namespace

void add_offsets_show(Command& offsets, Commands& commands) {
  auto* command = offsets.add_subcommand(
      "show", "Show stored offsets, end offsets, lag, state, and owner of each partition");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-t,--topic", arguments->topic, "Only this topic")->type_name("TOPIC");
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return show(config->load(), *arguments); });
}

}  // namespace pawl::cli
