// `dlq erase`: removes personal data from what was set aside.
#include <fmt/format.h>

#include <iostream>

#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/operator_change.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/changes.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::string key;
  bool dry_run = false;
  bool json = false;
};

int erase(const Options& options, const Arguments& arguments) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterChanges changes(options.postgres.schema, consumer.id);
  const auto found = arguments.dry_run ? changes.count_erasable(*session, arguments.key)
                                       : changes.erase(*session, arguments.key);
  if (arguments.json) {
    std::cout << indented({{"dry_run", arguments.dry_run},
                           {"dead_letters", found.letters},
                           {"skipped_messages", found.skipped}})
              << '\n';
    return kDone;
  }
  std::cout << fmt::format("{} the payload of {} and {}\n",
                           arguments.dry_run ? "would erase" : "erased",
                           counted(found.letters, "dead letter", "dead letters"),
                           counted(found.skipped, "skipped message", "skipped messages"));
  return kDone;
}

}  // namespace

void add_dlq_erase(Command& dlq, Commands& commands) {
  auto* command = dlq.add_subcommand(
      "erase", "Erase all stored bytes of a record key; its unresolved dead letters are discarded");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--record-key", arguments->key, "Record key, as sent by the producer")
      ->required()
      ->type_name("TEXT");
  command->add_flag("--dry-run", arguments->dry_run, "Count without changing anything");
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return erase(config->load(), *arguments); });
}

}  // namespace pawl::cli
