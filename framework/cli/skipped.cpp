// `skipped list`: messages that were left out on purpose.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/json.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "dead_letters/dlq.hpp"
#include "ledger/skipped_view.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  ledger::SkippedFilter filter;
  std::int64_t limit = 100;
  bool json = false;
};

std::string halt_text(const ledger::SkippedMessage& message) {
  constexpr std::size_t kMost = 200;
  if (!message.halt)
    return "-";
  const auto& cause = message.halt->cause;
  const auto shown = head(cause.empty() ? message.halt->code : cause, kMost);
  return std::string(shown) + (shown.size() < cause.size() ? "..." : "");
}

void print_json(const std::vector<ledger::SkippedMessage>& skipped) {
  auto array = Json::array();
  for (const auto& message : skipped) {
    Json entry = {{"topic", message.partition.topic},
                  {"partition", message.partition.partition},
                  {"offset", message.offset},
                  {"key", readable(message.record_key)},
                  {"reason", message.reason},
                  {"payload", message.omitted ? "omitted" : "complete"},
                  {"value_bytes", or_null(message.value_bytes)},
                  {"timestamp", or_null(message.timestamp)},
                  {"skipped_at", message.skipped_at},
                  {"actor", message.actor}};
    describe(entry, message.halt.value_or(ledger::Halt{}));
    array.push_back(std::move(entry));
  }
  std::cout << indented({{"skipped_messages", std::move(array)}}) << '\n';
}

void print_table(const std::vector<ledger::SkippedMessage>& skipped, std::int64_t limit) {
  if (skipped.empty()) {
    std::cout << "No message was skipped.\n";
    return;
  }
  using Align = Table::Align;
  Table table({{"MESSAGE"},
               {"KEY"},
               {"BYTES", Align::kRight},
               {"SKIPPED"},
               {"BY"},
               {"REASON"},
               {"HALTED BECAUSE"}});
  for (const auto& message : skipped) {
    table.add({name_of(message.partition, message.offset),
               key_text(message.record_key, std::nullopt),
               message.omitted       ? "omitted"
               : message.value_bytes ? std::to_string(*message.value_bytes)
                                     : "-",
               date_time(message.skipped_at), message.actor, message.reason, halt_text(message)});
  }
  const auto terminal = terminal_of(STDOUT_FILENO);
  std::cout << table.text(terminal.columns);
  if (static_cast<std::int64_t>(skipped.size()) == limit && limit < kMostEntries)
    std::cout << fmt::format("{}there may be more: --limit {}\n", symbol(terminal, Symbol::kMore),
                             std::min(limit * 10, kMostEntries));
}

int list(const Options& options, const Arguments& arguments) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const auto skipped = ledger::list_skipped(*session, options.postgres.schema, consumer.id,
                                            arguments.filter, arguments.limit);
  if (arguments.json) {
    print_json(skipped);
  } else {
    print_table(skipped, arguments.limit);
  }
  return kDone;
}

}  // namespace

void add_skipped(Command& parser, Commands& commands) {
  auto* skipped = parser.add_subcommand("skipped", "List skipped messages");
  auto* command = skipped->add_subcommand(
      "list", "List skipped messages with time, operator, and reason; newest first");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-t,--topic", arguments->filter.topic, "Only this topic")->type_name("TOPIC");
  command->add_option("-p,--partition", arguments->filter.partition, "Only this partition")
      ->not_negative()
      ->type_name("P");
  command->add_option("--limit", arguments->limit, "Limit of messages")
      ->at_most_entries()
      ->shows_default();
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return list(config->load(), *arguments); });
}

}  // namespace pawl::cli
