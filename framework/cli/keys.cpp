// `keys show|estimate`: where a key was first seen, and what keys cost.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <iostream>

#include "cli/commands.hpp"
#include "cli/key_estimate.hpp"
#include "config/units.hpp"
#include "console/bad_call.hpp"
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
#include "dead_letters/store/view.hpp"
#include "engine/key_retention.hpp"
#include "leases/store/view.hpp"
#include "ledger/key_view.hpp"
#include "message/idempotency_key.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

/// What PostgreSQL can hold in a field.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30U;

struct ShowArguments {
  std::string key;
  std::string scope;
  std::size_t max_bytes = 4096;
  bool json = false;
};

struct Found {
  std::string key;  ///< in its stored form
  std::vector<ledger::SearchedScope> scopes;
  std::vector<ledger::KeyRow> keys;
  std::vector<ledger::KeyRow> elsewhere;  ///< in other scopes; only where `keys` is empty
  std::vector<ledger::HaltedAt> halts;
  std::vector<ledger::DeadLetter> letters;
  std::vector<ledger::LeaseRow> leases;
};

std::string hash_text(std::int64_t hash) {
  return fmt::format("{:016x}", static_cast<std::uint64_t>(hash));
}

Found find(const Options& options, const ShowArguments& arguments) {
  auto key = message::make_idempotency_key(arguments.key);
  if (!key)
    throw BadCall("KEY is empty, and no message has an empty key");
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const auto& schema = options.postgres.schema;
  Found found;
  found.key = *std::move(key);
  found.scopes = ledger::searched_scopes(*session, schema, consumer.id, arguments.scope);
  if (found.scopes.empty() && !arguments.scope.empty()) {
    throw BadCall(
        fmt::format("--scope {}: the scope does not exist. Without --scope, `keys show` searches "
                    "all scopes of {}/{}",
                    arguments.scope, options.kafka.cluster, options.kafka.group));
  }
  // One more than is shown tells that there are more.
  const auto most = arguments.max_bytes + 1;
  found.keys = ledger::find_key(*session, schema, found.scopes, found.key, most);
  if (found.keys.empty())
    found.elsewhere = ledger::find_key_elsewhere(*session, schema, found.scopes, found.key, most);
  ledger::LeaseFilter open_calls;
  open_calls.key = found.key;
  open_calls.scope = arguments.scope;
  found.leases = ledger::LeaseView(schema, consumer.id).list(*session, open_calls, kMostEntries);
  ledger::DeadLetterFilter filter;
  found.halts = ledger::halts_with_key(*session, schema, consumer.id, found.key);
  filter.ids = ledger::letters_with_key(*session, schema, consumer.id, found.key);
  filter.statuses = letter_statuses("all");
  if (!filter.ids.empty()) {
    found.letters =
        ledger::DeadLetterView(schema, consumer.id)
            .list(*session, filter, static_cast<std::int64_t>(filter.ids.size()), false);
  }
  return found;
}

std::optional<std::string_view> view(const std::optional<std::string>& bytes) {
  return bytes ? std::optional<std::string_view>(*bytes) : std::nullopt;
}

Json describe(const std::vector<ledger::KeyRow>& keys, std::size_t max_bytes) {
  auto described = Json::array();
  for (const auto& key : keys) {
    described.push_back(
        {{"scope", key.scope},
         {"consumer", key.consumer},
         {"topic", key.topic},
         {"partition", key.partition},
         {"offset", key.offset},
         {"created_at", key.created_at},
         {"payload_hash", hash_text(key.payload_hash)},
         {"response_bytes", key.response ? Json(key.response_bytes) : Json(nullptr)},
         {"response", readable(view(key.response), max_bytes)}});
  }
  return described;
}

void print_json(const Found& found, std::size_t max_bytes) {
  Json json;
  json["key"] = found.key;
  json["found"] = !found.keys.empty();
  auto& scopes = json["scopes"] = Json::array();
  for (const auto& scope : found.scopes) {
    scopes.push_back({{"scope", scope.name}, {"pruned_to", or_null(scope.pruned_to)}});
  }
  json["keys"] = describe(found.keys, max_bytes);
  json["other_scopes"] = describe(found.elsewhere, max_bytes);
  auto& calls = json["calls"] = Json::array();
  for (const auto& lease : found.leases) {
    calls.push_back(
        {{"scope", lease.scope},
         {"state", to_string(lease.state)},
         {"owner", or_null(lease.owner)},
         {"lease_expires_at", lease.until ? Json(ledger::to_string(*lease.until)) : Json(nullptr)},
         {"attempts", lease.attempts}});
  }
  auto& halts = json["halts"] = Json::array();
  for (const auto& halt : found.halts) {
    halts.push_back({{"topic", halt.partition.topic},
                     {"partition", halt.partition.partition},
                     {"offset", halt.offset}});
  }
  auto& letters = json["dead_letters"] = Json::array();
  for (const auto& letter : found.letters) {
    letters.push_back({{"id", letter.id},
                       {"status", letter.status},
                       {"reason", letter.reason},
                       {"topic", letter.partition.topic},
                       {"partition", letter.partition.partition},
                       {"offset", letter.offset},
                       {"failed_at", letter.died_at}});
  }
  std::cout << indented(json) << '\n';
}

std::string table_of(const std::vector<ledger::KeyRow>& keys) {
  using Align = Table::Align;
  Table table({{"SCOPE"},
               {"MESSAGE"},
               {"KEPT SINCE"},
               {"PAYLOAD HASH"},
               {"RESPONSE BYTES", Align::kRight},
               {"CONSUMER"}});
  for (const auto& key : keys) {
    table.add({key.scope, name_of({key.topic, key.partition}, key.offset),
               date_time(key.created_at), hash_text(key.payload_hash),
               key.response ? std::to_string(key.response_bytes) : "-", key.consumer});
  }
  return table.text(terminal_of(STDOUT_FILENO).columns);
}

/// `not_applied`: a sentence without its period, for a key that is not stored.
void print(const Found& found, const std::string& not_applied, std::size_t max_bytes) {
  if (found.keys.empty()) {
    std::cout << fmt::format("{} is not stored: {}", printable(found.key), not_applied);
    std::vector<std::string> pruned;
    for (const auto& scope : found.scopes) {
      if (!scope.pruned_to.empty())
        pruned.push_back(fmt::format("{} (keys before {})", scope.name, scope.pruned_to));
    }
    std::cout << (pruned.empty() ? std::string(", and retention has not removed any key.\n")
                                 : fmt::format(", or retention has removed the key since: {}\n",
                                               fmt::join(pruned, ", ")));
    if (!found.elsewhere.empty()) {
      std::cout << fmt::format(
          "\nIn other scopes of this database it was applied. That does not make it a duplicate "
          "here:\n"
          "{}For details, use `keys show` with --scope {}, or with the configuration of {}.\n",
          table_of(found.elsewhere), printable(found.elsewhere.front().scope),
          printable(found.elsewhere.front().consumer));
    }
  } else {
    std::cout << table_of(found.keys);
    for (const auto& key : found.keys) {
      if (!key.response)
        continue;
      auto decoded = decode(view(key.response), max_bytes);
      decoded.bytes = key.response_bytes;
      std::cout << fmt::format("\nResponse in {}: {}\n", printable(key.scope), to_text(decoded));
    }
  }
  for (const auto& lease : found.leases) {
    std::cout << fmt::format("\nIts call in {}: {}{}; attempt {}. For details, use `calls show`.\n",
                             printable(lease.scope), to_string(lease.state),
                             lease.state != ledger::LeaseState::kInHand
                                 ? ""
                                 : fmt::format(", by {} until {}", printable(lease.owner),
                                               ledger::to_string(*lease.until)),
                             lease.attempts);
  }
  for (const auto& halt : found.halts) {
    std::cout << fmt::format(
        "\n{} has this key, and its partition is halted there. `status` shows the cause.\n",
        printable(name_of(halt.partition, halt.offset)));
  }
  if (found.letters.empty())
    return;
  std::cout << "\nDead letters with this key:\n";
  Table table({{"ID", Table::Align::kRight}, {"STATUS"}, {"REASON"}, {"MESSAGE"}, {"FAILED"}});
  for (const auto& letter : found.letters) {
    table.add({std::to_string(letter.id), letter.status, letter.reason,
               name_of(letter.partition, letter.offset), date_time(letter.died_at)});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
}

int show(const Options& options, const ShowArguments& arguments) {
  const auto found = find(options, arguments);
  if (arguments.json) {
    print_json(found, arguments.max_bytes);
  } else {
    print(found,
          arguments.scope.empty() ? fmt::format("{}/{} has applied no message with this key",
                                                options.kafka.cluster, options.kafka.group)
                                  : fmt::format("no message with this key was applied in scope {}",
                                                printable(arguments.scope)),
          arguments.max_bytes);
  }
  return found.keys.empty() ? kFailed : kDone;
}

struct EstimateArguments {
  double rate = 0;
  std::string handler;
  std::string retention;
  std::int64_t key_bytes = 0;
  bool json = false;
};

/// Of the handler that was named, else the longest of all.
milliseconds retention_of(const Options& options, const std::string& handler) {
  std::optional<milliseconds> longest;
  for (const auto& one : options.handlers) {
    if (!handler.empty() && one.name != handler)
      continue;
    const auto own = engine::key_retention(one, options);
    longest = longest ? engine::longer(*longest, own) : own;
  }
  if (longest)
    return *longest;
  std::vector<std::string> names;
  for (const auto& one : options.handlers) {
    if (!one.name.empty())
      names.push_back(one.name);
  }
  throw BadCall(
      fmt::format("--handler {}: no handler has this name; there is {}", handler,
                  names.empty() ? "none with a name" : fmt::format("{}", fmt::join(names, ", "))));
}

int estimate(const Options& options, const EstimateArguments& arguments) {
  KeyLoad load;
  load.rate = arguments.rate;
  load.retention = retention_of(options, arguments.handler);
  if (!arguments.retention.empty()) {
    const auto retention = config::parse_duration(arguments.retention);
    if (!retention || retention->count() <= 0) {
      throw BadCall(
          fmt::format("--retention {}: not a duration. Use, for example, 90s, 15m, 12h, or 7d",
                      arguments.retention));
    }
    load.retention = *retention;
  }
  if (load.retention.count() == 0)
    throw BadCall(
        "keys are never removed, by \"0s\" as retention.keys or as a handler's retention; give "
        "--retention");
  std::optional<ledger::KeyTableSize> measured;
  if (arguments.key_bytes > 0) {
    load.key_bytes = arguments.key_bytes;
  } else {
    const auto session = connect_database(options);
    measured = ledger::key_table_size(*session, options.postgres.schema);
  }
  const auto result = estimate_keys(load, measured);
  std::cout << (arguments.json ? to_json(load, result) : to_text(load, result));
  return kDone;
}

}  // namespace

void add_keys(Command& parser, Commands& commands) {
  auto* keys = parser.add_subcommand("keys", "Find an idempotency key, or estimate storage");

  auto* show_command = keys->add_subcommand(
      "show", "Show the message, response, and dead letters of an idempotency key");
  const auto show_config = add_config_arguments(*show_command);
  const auto show_arguments = std::make_shared<ShowArguments>();
  show_command->add_option("KEY", show_arguments->key, "Idempotency key")->required();
  show_command
      ->add_option("--scope", show_arguments->scope,
                   "Only this scope (default: all scopes of the consumer)")
      ->type_name("NAME");
  show_command->add_option("--max-bytes", show_arguments->max_bytes, "Limit of bytes of a response")
      ->within(1, kMostBytes)
      ->type_name("N")
      ->shows_default();
  show_command->add_json_flag(show_arguments->json);
  show_command->exit_status({{"0", "the key is stored"},
                             {"1", "the key is not stored, or failure"},
                             {"2", "usage or configuration error; nothing was changed"}});
  commands.set_action(show_command, [show_config, show_arguments] {
    return show(show_config->load(), *show_arguments);
  });

  auto* estimate_command = keys->add_subcommand(
      "estimate", "Estimate disk space and write-ahead log of keys for a message rate");
  const auto estimate_config = add_config_arguments(*estimate_command);
  const auto estimate_arguments = std::make_shared<EstimateArguments>();
  estimate_command->add_option("--rate", estimate_arguments->rate, "Messages per second")
      ->required()
      ->positive()
      ->type_name("N");
  estimate_command
      ->add_option("--handler", estimate_arguments->handler,
                   "Use the key retention of this handler (default: the longest one)")
      ->type_name("NAME");
  estimate_command
      ->add_option("--retention", estimate_arguments->retention,
                   "Use this retention instead of the configured one")
      ->type_name("DURATION");
  estimate_command
      ->add_option("--key-bytes", estimate_arguments->key_bytes,
                   "Bytes per key (default: measured on the stored keys)")
      ->within(1, message::kMaxIdempotencyKeyBytes)
      ->type_name("N");
  estimate_command->add_json_flag(estimate_arguments->json);
  commands.set_action(estimate_command, [estimate_config, estimate_arguments] {
    return estimate(estimate_config->load(), *estimate_arguments);
  });
}

}  // namespace pawl::cli
