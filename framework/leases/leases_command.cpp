// `calls`: external calls that are in flight, or have an unknown outcome.
#include "leases/leases_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <set>

#include "config/invocation.hpp"
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
#include "leases/store/view.hpp"
#include "message/idempotency_key.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::string key;
  std::string scope;
  std::string response;
  std::int64_t limit = 50;
  std::vector<std::int64_t> ids;
  bool all = false;
  bool unknown = false;
  bool lost = false;
  bool done = false;
  bool not_done = false;
  bool json = false;
};

struct Site {
  std::unique_ptr<postgres::Session> session;
  ledger::LeaseView view;
};

Site open(const Options& options) {
  auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  if (options.calls.lease_store == LeaseStore::kRedis) {
    std::cerr << "Leases in Redis are not shown. Leases in PostgreSQL, and lost leases:\n";
  }
  return {std::move(session), ledger::LeaseView(options.postgres.schema, consumer.id)};
}

Json describe(const ledger::LeaseRow& lease) {
  const auto time = [](const std::optional<ledger::Instant>& instant) {
    return instant ? Json(ledger::to_string(*instant)) : Json(nullptr);
  };
  return {{"scope", lease.scope},
          {"key", lease.key},
          {"remote_key", message::remote_key(lease.scope, lease.key)},
          {"state", to_string(lease.state)},
          {"owner", or_null(lease.owner)},
          {"lease_expires_at", time(lease.until)},
          {"attempts", lease.attempts},
          {"started_at", ledger::to_string(lease.begun)},
          {"unknown_since", time(lease.unknown_since)},
          {"response", lease.done ? readable(lease.response) : Json(nullptr)},
          {"resolved_by", or_null(lease.resolved_by)},
          {"topic", lease.topic},
          {"partition", lease.partition},
          {"offset", lease.offset},
          {"dead_letter_id", lease.dead_letter ? Json(*lease.dead_letter) : Json(nullptr)}};
}

Json describe(const ledger::LeaseLoss& loss) {
  return {{"id", loss.id},
          {"scope", loss.scope},
          {"key", loss.key},
          {"remote_key", message::remote_key(loss.scope, loss.key)},
          {"owner", loss.owner},
          {"attempt", loss.attempt},
          {"returned", loss.returned},
          {"lost_at", ledger::to_string(loss.at)},
          {"topic", loss.topic},
          {"partition", loss.partition},
          {"offset", loss.offset}};
}

/// The next attempt for a dead letter's call is the replay of that dead letter.
std::string state_text(const ledger::LeaseRow& lease) {
  if (lease.dead_letter)
    return fmt::format("{}, dead letter #{}", to_string(lease.state), *lease.dead_letter);
  return to_string(lease.state);
}

/// The next step after an operator has recorded the outcome.
std::string what_next(const InvocationOptions& invocation, const ledger::LeaseRow& lease) {
  if (lease.dead_letter) {
    return fmt::format("Its message is a dead letter. Replay it:\n  {} {}",
                       command_text(invocation, "dlq replay"), *lease.dead_letter);
  }
  return fmt::format("If its partition is halted, resume it:\n  {} {}",
                     command_text(invocation, "partitions resume"),
                     short_partition_words({lease.topic, lease.partition}));
}

int list_losses(const Site& site, const ledger::LeaseFilter& filter, const Arguments& arguments) {
  const auto found = site.view.losses(*site.session, filter, arguments.limit);
  if (arguments.json) {
    auto json = Json::array();
    for (const auto& loss : found)
      json.push_back(describe(loss));
    std::cout << indented({{"lease_losses", std::move(json)}}) << '\n';
    return kDone;
  }
  if (found.empty()) {
    std::cout << "No call has lost its lease.\n";
    return kDone;
  }
  using Align = Table::Align;
  Table table({{"ID", Align::kRight},
               {"LOST"},
               {"KEY"},
               {"ATTEMPT", Align::kRight},
               {"CALL"},
               {"OWNER"},
               {"MESSAGE"},
               {"SCOPE"},
               {"REMOTE KEY"}});
  for (const auto& loss : found) {
    table.add({std::to_string(loss.id), date_time(ledger::to_string(loss.at)), loss.key,
               std::to_string(loss.attempt), loss.returned ? "returned" : "unknown", loss.owner,
               name_of({loss.topic, loss.partition}, loss.offset), loss.scope,
               message::remote_key(loss.scope, loss.key)});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  return kDone;
}

int list(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  ledger::LeaseFilter filter;
  filter.scope = arguments.scope;
  filter.unknown = arguments.unknown;
  if (arguments.lost)
    return list_losses(site, filter, arguments);
  const auto found = site.view.list(*site.session, filter, arguments.limit);
  if (arguments.json) {
    auto json = Json::array();
    for (const auto& lease : found)
      json.push_back(describe(lease));
    std::cout << indented({{"calls", std::move(json)}}) << '\n';
    return kDone;
  }
  if (found.empty()) {
    std::cout << (arguments.unknown ? "No call has an unknown outcome.\n"
                                    : "No call is in flight, unknown, done, or waiting.\n");
    return kDone;
  }
  using Align = Table::Align;
  Table table({{"KEY"},
               {"STATE"},
               {"ATTEMPTS", Align::kRight},
               {"STARTED"},
               {"UNKNOWN SINCE"},
               {"OWNER"},
               {"MESSAGE"},
               {"SCOPE"}});
  for (const auto& lease : found) {
    table.add({lease.key, state_text(lease), std::to_string(lease.attempts),
               date_time(ledger::to_string(lease.begun)),
               lease.unknown_since ? date_time(ledger::to_string(*lease.unknown_since)) : "-",
               lease.owner.empty() ? "-" : lease.owner,
               name_of({lease.topic, lease.partition}, lease.offset), lease.scope});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  return kDone;
}

/// The lease of the key; throws BadCall where there is none, or more than one.
ledger::LeaseRow find(const Site& site, const Arguments& arguments) {
  const auto key = message::make_idempotency_key(arguments.key);
  if (!key)
    throw BadCall("KEY is empty, and no message has an empty key");
  ledger::LeaseFilter filter;
  filter.scope = arguments.scope;
  filter.key = *key;
  auto found = site.view.list(*site.session, filter, 2);
  if (found.empty()) {
    throw BadCall(fmt::format(
        "{}: no call for this key is in flight or unknown; `keys show` shows whether it "
        "is finished",
        printable(arguments.key)));
  }
  if (found.size() > 1) {
    throw BadCall(fmt::format("{} is in several scopes; choose one: --scope {}, or --scope {}",
                              printable(arguments.key), printable(found[0].scope),
                              printable(found[1].scope)));
  }
  return std::move(found.front());
}

int show(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  auto json = describe(find(site, arguments));
  ledger::LeaseFilter filter;
  filter.scope = json["scope"].get<std::string>();
  filter.key = json["key"].get<std::string>();
  auto& losses = json["lease_losses"] = Json::array();
  for (const auto& loss : site.view.losses(*site.session, filter, kMostEntries))
    losses.push_back(describe(loss));
  std::cout << (arguments.json ? indented(json) : printable_lines(indented(json))) << '\n';
  return kDone;
}

int resolve(const Options& options, const Arguments& arguments) {
  const bool done = arguments.done || !arguments.response.empty();
  if (done == arguments.not_done)
    throw BadCall("--done, --response TEXT, or --not-done is required");
  const auto site = open(options);
  const auto lease = find(site, arguments);
  site.view.resolve(*site.session, lease, done,
                    arguments.response.empty() ? Response{} : Response{arguments.response});
  if (arguments.json) {
    std::cout << indented({{"scope", lease.scope},
                           {"key", lease.key},
                           {"outcome", done ? "done" : "not-done"},
                           {"topic", lease.topic},
                           {"partition", lease.partition},
                           {"offset", lease.offset},
                           {"dead_letter_id", or_null(lease.dead_letter)}})
              << '\n';
    return kDone;
  }
  std::cout << fmt::format("{}: {}. {}\n", printable(lease.key),
                           done ? "done; the message is finished when it is retried"
                                : "not done; the call is made again when its message is retried",
                           what_next(options.invocation, lease));
  return kDone;
}

int acknowledge(const Options& options, const Arguments& arguments) {
  if (arguments.ids.empty() != arguments.all)
    throw BadCall("ID... or --all is required");
  const auto site = open(options);
  const auto forgotten = site.view.acknowledge(*site.session, arguments.ids, arguments.all);
  std::cout << (arguments.json ? indented({{"acknowledged", forgotten}}) + '\n'
                               : fmt::format("acknowledged {}\n", forgotten));
  const std::set<std::int64_t> named(arguments.ids.begin(), arguments.ids.end());
  if (static_cast<std::size_t>(forgotten) >= named.size())
    return kDone;
  std::cerr << fmt::format(
      "error: {} of them do not exist for this consumer. List the existing ones:\n  {} --lost\n",
      named.size() - static_cast<std::size_t>(forgotten),
      command_text(options.invocation, "calls list"));
  return kFailed;
}

}  // namespace

void add_leases(Command& parser, Commands& commands) {
  auto* leases =
      parser.add_subcommand("calls", "Inspect or resolve external calls with an unknown outcome");
  const auto add = [&](const std::string& name, const std::string& description,
                       bool by_scope = true) {
    auto* command = leases->add_subcommand(name, description);
    const auto arguments = std::make_shared<Arguments>();
    auto config = add_config_arguments(*command);
    if (by_scope) {
      command
          ->add_option("--scope", arguments->scope,
                       "Only this scope (default: all scopes of the consumer)")
          ->type_name("NAME");
    }
    return std::tuple{command, config, arguments};
  };
  const auto act = [&](Command* command, const auto& config, const auto& arguments, auto function) {
    commands.set_action(
        command, [config, arguments, function] { return function(config->load(), *arguments); });
  };
  {
    const auto [command, config, arguments] = add("list", "List unfinished calls");
    command->add_option("--limit", arguments->limit, "Limit of calls")
        ->at_most_entries()
        ->shows_default();
    command->add_flag("--unknown", arguments->unknown, "Only calls with an unknown outcome");
    command->add_flag("--lost", arguments->lost,
                      "Calls that lost their lease and may have been made twice, instead");
    command->add_json_flag(arguments->json);
    act(command, config, arguments, list);
  }
  {
    const auto [command, config, arguments] = add("show", "Show one unfinished call");
    command->add_option("KEY", arguments->key, "Idempotency key")->required();
    command->add_json_flag(arguments->json);
    act(command, config, arguments, show);
  }
  {
    const auto [command, config, arguments] =
        add("resolve", "Record the outcome of a call after you checked with the remote service");
    command->add_option("KEY", arguments->key, "Idempotency key")->required();
    command->add_flag("--done", arguments->done, "The call succeeded, without a response to store");
    command->add_option("--response", arguments->response, "The call succeeded with this response")
        ->type_name("TEXT");
    command->add_flag("--not-done", arguments->not_done,
                      "The call failed or was not made; pawl makes it again");
    command->add_json_flag(arguments->json);
    act(command, config, arguments, resolve);
  }
  {
    const auto [command, config, arguments] =
        add("acknowledge", "Remove records of lost leases after you checked the calls", false);
    command->add_option("ID", arguments->ids, "IDs, as printed by calls list --lost");
    command->add_flag("--all", arguments->all, "All records of the consumer");
    command->add_json_flag(arguments->json);
    act(command, config, arguments, acknowledge);
  }
}

}  // namespace pawl::cli
