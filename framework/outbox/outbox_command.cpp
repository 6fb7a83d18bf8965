// `outbox`: what waits for Kafka, and what Kafka refused.
#include "outbox/outbox_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <limits>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/json.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "ledger/payload.hpp"
#include "outbox/outbox_status.hpp"
#include "outbox/store/view.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kLongestKey = 24;
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

struct Arguments {
  std::vector<std::int64_t> ids;
  std::int64_t id = 0;
  std::int64_t limit = 50;
  std::string because;
  bool all = false;
  bool discarded = false;
  bool exit_code = false;
  bool json = false;
};

struct Site {
  std::unique_ptr<postgres::Session> session;
  ledger::OutboxView view;
};

Site open(const Options& options) {
  auto session = connect_database(options);
  return {std::move(session), ledger::OutboxView(options.postgres.schema)};
}

std::string key_text(const std::optional<std::string>& key) {
  if (!key)
    return "-";
  const std::string text(head(*key, kLongestKey));
  return text.size() < key->size() ? text + "..." : text;
}

Json describe(const ledger::SetApart& message) {
  Json json;
  json["id"] = message.id;
  json["topic"] = message.topic;
  json["key"] = readable(message.key);
  json["event_id"] = message.event_id;
  json["status"] = message.status;
  json["reason"] = message.reason;
  json["created_at"] = ledger::to_string(message.created);
  json["failed_at"] = ledger::to_string(message.failed);
  json["resolved_at"] =
      message.resolved ? Json(ledger::to_string(*message.resolved)) : Json(nullptr);
  json["resolved_by"] = or_null(message.resolved_by);
  json["resolution"] = or_null(message.resolution);
  return json;
}

int status(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  const auto found = site.view.look(*site.session, options.outbox.alert_age);
  const bool needed = arguments.exit_code && (found.late() || found.set_apart > 0);
  if (arguments.json) {
    std::cout << indented(outbox_json(found)) << '\n';
    return needed ? kNeedsSomebody : kDone;
  }
  using Align = Table::Align;
  Table table({{"SHARD", Align::kRight},
               {"OWNER"},
               {"WAITING", Align::kRight},
               {"OLDEST", Align::kRight},
               {"PUBLISHED", Align::kRight},
               {"LAST PUBLISHED"}});
  for (const auto& lane : found.lanes) {
    const auto owner = lane.owner.empty() ? "-" : lane.owner + (lane.owner_late ? " (late)" : "");
    table.add({std::to_string(lane.lane), owner, outbox_count(lane.waiting, lane.more),
               outbox_age(lane.oldest, found.now), grouped(lane.published),
               lane.last_published ? date_time(ledger::to_string(*lane.last_published)) : "-"});
  }
  const auto columns = terminal_of(STDOUT_FILENO).columns;
  std::cout << table.text(columns) << '\n'
            << wrapped(printable_lines(outbox_text(found)), columns, 0) << '\n';
  if (found.set_apart > 0)
    std::cout << "List the failed messages:\n  " << command_text(options.invocation, "outbox list")
              << '\n';
  return needed ? kNeedsSomebody : kDone;
}

int list(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  const auto found =
      site.view.set_apart(*site.session, 0, arguments.discarded, arguments.limit, false);
  if (arguments.json) {
    auto json = Json::array();
    for (const auto& message : found)
      json.push_back(describe(message));
    std::cout << indented({{"failed_messages", std::move(json)}}) << '\n';
    return kDone;
  }
  if (found.empty()) {
    std::cout << "No outbox message has failed.\n";
    return kDone;
  }
  std::vector<Table::Column> columns{
      {"ID", Table::Align::kRight}, {"STATUS"}, {"TOPIC"}, {"KEY"}, {"SINCE"}, {"REASON"}};
  if (arguments.discarded)
    columns.insert(columns.end(), {{"DISCARDED"}, {"BY"}, {"BECAUSE"}});
  Table table(columns);
  for (const auto& message : found) {
    std::vector<std::string> cells{std::to_string(message.id),
                                   message.status,
                                   message.topic,
                                   key_text(message.key),
                                   date_time(ledger::to_string(message.failed)),
                                   message.reason};
    if (arguments.discarded) {
      for (const auto& cell :
           {message.resolved ? date_time(ledger::to_string(*message.resolved)) : "",
            message.resolved_by, message.resolution})
        cells.push_back(cell.empty() ? "-" : cell);
    }
    table.add(cells);
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  if (!arguments.discarded) {
    std::cout << fmt::format(
        "\nAfter the fix:\n  {} ID\nIf it cannot be fixed:\n  {} ID --because TEXT\n",
        command_text(options.invocation, "outbox retry"),
        command_text(options.invocation, "outbox discard"));
  }
  return kDone;
}

int show(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  const auto found = site.view.set_apart(*site.session, arguments.id, true, 1, true);
  if (found.empty()) {
    throw BadCall(fmt::format("the outbox has no failed message {}; list them:\n  {} --discarded",
                              arguments.id, command_text(options.invocation, "outbox list")));
  }
  auto json = describe(found.front());
  auto& headers = json["headers"] = Json::array();
  if (!found.front().headers.empty()) {
    for (const auto& header : ledger::parse_headers_json(found.front().headers))
      headers.push_back({{"name", header.name}, {"value", readable(header.value)}});
  }
  json["value"] = readable(found.front().value);
  std::cout << (arguments.json ? indented(json) : printable_lines(indented(json))) << '\n';
  return kDone;
}

std::vector<std::int64_t> chosen(const Site& site, const Arguments& arguments) {
  if (arguments.all == !arguments.ids.empty())
    throw BadCall("ID... or --all is required");
  if (!arguments.all)
    return arguments.ids;
  std::vector<std::int64_t> ids;
  for (const auto& message : site.view.set_apart(*site.session, 0, false, kAll, false))
    ids.push_back(message.id);
  return ids;
}

int resolve(const Options& options, const Arguments& arguments) {
  const auto site = open(options);
  std::int64_t done = 0;
  std::int64_t back = 0;
  auto missing = Json::array();
  for (const auto id : chosen(site, arguments)) {
    if (const auto moved = site.view.retry(*site.session, id, arguments.because)) {
      ++done;
      back += *moved;
    } else if (!arguments.all) {
      // With --all, it went back together with another message of its key.
      std::cerr << fmt::format("error: the outbox has no failed message {}\n", id);
      missing.push_back(id);
    }
  }
  const bool all = missing.empty();
  const bool discards = !arguments.because.empty();
  if (arguments.json) {
    Json json;
    if (discards)
      json["discarded"] = done;
    json["requeued"] = back;
    json["not_found"] = std::move(missing);
    std::cout << indented(json) << '\n';
    return all ? kDone : kFailed;
  }
  if (discards)
    std::cout << counted(done, "message", "messages") << " discarded; ";
  std::cout << fmt::format("{} in the outbox again\n", counted(back, "message is", "messages are"));
  return all ? kDone : kFailed;
}

}  // namespace

void add_outbox(Command& parser, Commands& commands) {
  auto* outbox =
      parser.add_subcommand("outbox", "Inspect the outbox; retry or discard failed messages");
  const auto add = [&](const std::string& name, const std::string& description) {
    auto* command = outbox->add_subcommand(name, description);
    return std::tuple{command, add_config_arguments(*command), std::make_shared<Arguments>()};
  };
  const auto act = [&](Command* command, const auto& config, const auto& arguments, auto function) {
    commands.set_action(command, [config, arguments, function] {
      return function(config->load_to_relay(), *arguments);
    });
  };
  {
    const auto [command, config, arguments] = add(
        "status", "Show waiting and failed messages, and the process that publishes each shard");
    command->add_flag("--exit-code", arguments->exit_code,
                      "Exit with 3 if a message failed, or waits for longer than outbox.alert_age");
    command->add_json_flag(arguments->json);
    command->exit_status({{"0", "success"},
                          {"1", "failure; the reason is on stderr"},
                          {"2", "usage or configuration error; nothing was changed"},
                          {"3", "attention required (--exit-code)"}});
    act(command, config, arguments, status);
  }
  {
    const auto [command, config, arguments] =
        add("list", "List failed messages: rejected by Kafka, or waiting for a rejected one");
    command->add_option("--limit", arguments->limit, "Limit of messages")
        ->at_most_entries()
        ->shows_default();
    command->add_flag("--discarded", arguments->discarded, "Also list discarded messages");
    command->add_json_flag(arguments->json);
    act(command, config, arguments, list);
  }
  {
    const auto [command, config, arguments] =
        add("show", "Show one failed message with headers, key, and value");
    command->add_option("ID", arguments->id, "ID, as printed by outbox list")->required();
    command->add_json_flag(arguments->json);
    act(command, config, arguments, show);
  }
  {
    const auto [command, config, arguments] =
        add("retry", "Publish failed messages, each with all of its topic and key, in order");
    command->add_option("ID", arguments->ids, "IDs, as printed by outbox list");
    command->add_flag("--all", arguments->all, "All failed messages");
    command->add_json_flag(arguments->json);
    act(command, config, arguments, resolve);
  }
  {
    const auto [command, config, arguments] =
        add("discard", "Discard failed messages; later messages of the same key are published");
    command->add_option("ID", arguments->ids, "IDs, as printed by outbox list")->required();
    command->add_option("--because", arguments->because, "Reason, stored with the message")
        ->required()
        ->reason();
    command->add_json_flag(arguments->json);
    act(command, config, arguments, resolve);
  }
}

}  // namespace pawl::cli
