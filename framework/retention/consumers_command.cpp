// `consumers list` and `consumers remove`: the consumers of this database. The rows of a consumer
// that is not used anymore block the removal of idempotency keys.
#include "retention/consumers_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/json.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "ledger/known_consumers.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::cli {
namespace {

struct ForgetArguments {
  std::string group;
  std::string cluster;
  std::string because;
  bool letters = false;
  bool json = false;
};

void print_json(const std::vector<ledger::ConsumerView>& consumers) {
  auto array = Json::array();
  for (const auto& consumer : consumers) {
    array.push_back({{"cluster", consumer.cluster},
                     {"group", consumer.group},
                     {"partitions", consumer.partitions},
                     {"processes", consumer.live},
                     {"updated_at", or_null(consumer.updated)},
                     {"scopes", consumer.scopes},
                     {"dead_letters", consumer.letters}});
  }
  std::cout << indented({{"consumers", std::move(array)}}) << '\n';
}

int list(const Options& options, bool json) {
  const auto session = connect_database(options);
  const auto consumers = ledger::known_consumers(*session, options.postgres.schema);
  if (json) {
    print_json(consumers);
    return kDone;
  }
  using Align = Table::Align;
  Table table({{"CLUSTER"},
               {"GROUP"},
               {"PARTITIONS", Align::kRight},
               {"PROCESSES", Align::kRight},
               {"LAST CHANGE"},
               {"DEAD LETTERS", Align::kRight},
               {"KEY SCOPES"}});
  for (const auto& consumer : consumers) {
    table.add(
        {consumer.cluster, consumer.group, std::to_string(consumer.partitions),
         std::to_string(consumer.live.size()),
         consumer.updated.empty() ? "-" : date_time(consumer.updated), grouped(consumer.letters),
         consumer.scopes.empty() ? "-" : fmt::format("{}", fmt::join(consumer.scopes, ", "))});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  return kDone;
}

const ledger::ConsumerView& find(const std::vector<ledger::ConsumerView>& consumers,
                                 const std::string& cluster, const std::string& group) {
  const auto found = std::ranges::find_if(consumers, [&](const auto& consumer) {
    return consumer.cluster == cluster && consumer.group == group;
  });
  if (found != consumers.end())
    return *found;
  std::vector<std::string> names;
  for (const auto& consumer : consumers)
    names.push_back(consumer.cluster + "/" + consumer.group);
  throw BadCall(fmt::format(
      "this database has no consumer {}/{}. Its consumers: {}. For another kafka.cluster, use "
      "--cluster",
      cluster, group, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

int forget(const Options& options, const ForgetArguments& arguments) {
  const auto cluster = arguments.cluster.empty() ? options.kafka.cluster : arguments.cluster;
  const auto session = connect_database(options);
  const auto consumers = ledger::known_consumers(*session, options.postgres.schema);
  const auto& consumer = find(consumers, cluster, arguments.group);
  const auto name = printable(cluster + "/" + arguments.group);
  const auto forgotten = [&] {
    try {
      return ledger::forget_consumer(*session, options.postgres.schema, consumer.id,
                                     arguments.because, arguments.letters);
    } catch (const postgres::InDoubt& error) {
      throw FatalError(fmt::format("{}: {}. Whether it was removed is unknown. Check it:\n  {}",
                                   name, error.what(),
                                   command_text(options.invocation, "consumers list")));
    } catch (const postgres::Error& error) {
      if (error.sqlstate() != "42501")
        throw;
      throw FatalError(fmt::format(
          "{}: {}. Nothing was changed. The role of a consumer lacks the privilege. Connect as the "
          "owner of schema {}: --set postgres.url=URL",
          name, error.what(), options.postgres.schema));
    }
  }();
  if (!forgotten.live.empty()) {
    throw FatalError(
        fmt::format("{} has running processes ({}). Nothing was changed. Stop them first", name,
                    printable(forgotten.live)));
  }
  if (arguments.json) {
    std::cout << indented({{"cluster", cluster},
                           {"group", arguments.group},
                           {"partitions", forgotten.partitions},
                           {"scopes", forgotten.scopes},
                           {"dead_letters", arguments.letters ? forgotten.letters : 0},
                           {"skipped_messages", arguments.letters ? forgotten.skipped : 0}})
              << '\n';
    return kDone;
  }
  std::cout << fmt::format(
      "{} is removed: {}, {}", name,
      counted(forgotten.partitions, "stored offset", "stored offsets"),
      counted(forgotten.scopes, "share in a key scope", "shares in key scopes"));
  if (arguments.letters) {
    std::cout << fmt::format(
        ", {}, {}", counted(forgotten.letters, "dead letter", "dead letters"),
        counted(forgotten.skipped, "record of a skipped message", "records of skipped messages"));
  } else if (consumer.letters > 0) {
    std::cout << fmt::format("; {} kept", counted(consumer.letters, "unresolved dead letter is",
                                                  "unresolved dead letters are"));
  }
  std::cout << ".\nIf the consumer starts again, its partitions halt until `offsets set` sets "
               "their offsets.\n";
  return kDone;
}

}  // namespace

void add_consumers(Command& parser, Commands& commands) {
  auto* consumers =
      parser.add_subcommand("consumers", "List or remove the consumers of this database");
  auto* list_command = consumers->add_subcommand(
      "list", "List consumers with partitions, processes, and scopes of keys");
  const auto list_config = add_config_arguments(*list_command);
  const auto json = std::make_shared<bool>(false);
  list_command->add_json_flag(*json);
  commands.set_action(list_command,
                      [list_config, json] { return list(list_config->load(), *json); });

  auto* command = consumers->add_subcommand(
      "remove", "Remove a consumer that is not used anymore, so that its keys can expire");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<ForgetArguments>();
  command->add_option("GROUP", arguments->group, "kafka.group of the consumer")->required();
  command
      ->add_option("--cluster", arguments->cluster,
                   "kafka.cluster of the consumer (default: the configured one)")
      ->type_name("NAME");
  command->add_option("--because", arguments->because, "Reason, stored in the history")
      ->required()
      ->reason();
  command->add_flag("--dead-letters", arguments->letters,
                    "Also remove its dead letters and skipped messages");
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return forget(config->load(), *arguments); });
}

}  // namespace pawl::cli
