// `dlq parked`: record keys whose later messages wait for a dead letter.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "config/invocation.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/operator_change.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "message/hexadecimal.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::string topic;
  std::int64_t limit = 100;
  bool json = false;
};

void print_json(const std::vector<ledger::ParkedKey>& keys) {
  auto array = Json::array();
  for (const auto& key : keys) {
    array.push_back({{"topic", key.topic},
                     {"key", readable(key.record_key)},
                     {"key_sha256", message::hexadecimal(key.record_key_hash)},
                     {"messages", key.letters},
                     {"oldest_failed_at", key.oldest},
                     {"first",
                      {{"id", key.first.id},
                       {"partition", key.first.partition.partition},
                       {"offset", key.first.offset},
                       {"status", key.first.status},
                       {"reason", key.first.reason},
                       {"statement", or_null(key.first.statement)},
                       {"error", key.first.error}}}});
  }
  std::cout << indented({{"parked_keys", std::move(array)}}) << '\n';
}

int parked(const Options& options, const Arguments& arguments) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  auto keys = view.parked_keys(*session, arguments.topic, arguments.limit);
  std::vector<ledger::DeadLetter> firsts;
  for (const auto& key : keys)
    firsts.push_back(key.first);
  view.name_left_parked(*session, firsts);
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i].first.error = firsts[i].error;
  if (arguments.json) {
    print_json(keys);
    return kDone;
  }
  if (keys.empty()) {
    std::cout << "No record key is parked.\n";
    return kDone;
  }
  using Align = Table::Align;
  Table table({{"TOPIC"},
               {"KEY"},
               {"MESSAGES", Align::kRight},
               {"SINCE"},
               {"FIRST ID", Align::kRight},
               {"FIRST MESSAGE"},
               {"REASON"},
               {"ERROR"}});
  for (const auto& key : keys) {
    table.add({key.topic, key_text(key.record_key, key.record_key_hash), grouped(key.letters),
               date_time(key.oldest), std::to_string(key.first.id), place_of(key.first),
               key.first.reason, first_line(key.first.located_error())});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns)
            << fmt::format(
                   "\nLater messages of a key wait for its first message. Fix the cause, then "
                   "replay all:\n  {} --all\n",
                   command_text(options.invocation, "dlq replay"));
  return kDone;
}

}  // namespace

void add_dlq_parked(Command& dlq, Commands& commands) {
  auto* command = dlq.add_subcommand(
      "parked", "List record keys with parked messages, and the dead letter they wait for");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-t,--topic", arguments->topic, "Only this topic")->type_name("TOPIC");
  command->add_option("--limit", arguments->limit, "Limit of record keys")
      ->at_most_entries()
      ->shows_default();
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return parked(config->load(), *arguments); });
}

}  // namespace pawl::cli
