// `dlq list|show`, and what the subcommands of `dlq` share.
#include "cli/dlq.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "cli/bad_call.hpp"
#include "cli/commands.hpp"
#include "cli/config_arguments.hpp"
#include "cli/connections.hpp"
#include "cli/json.hpp"
#include "cli/operator_change.hpp"
#include "cli/table.hpp"
#include "config/units.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

std::optional<std::chrono::seconds> age(const std::string& option, const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const auto duration = config::parse_duration(text);
  if (!duration)
    throw BadCall(
        fmt::format("{} {}: is no duration; give one as 90s, 15m, 12h or 7d", option, text));
  return std::chrono::duration_cast<std::chrono::seconds>(*duration);
}

Json describe(const DeadLetter& letter) {
  Json entry;
  entry["id"] = letter.id;
  entry["status"] = letter.status;
  entry["topic"] = letter.partition.topic;
  entry["partition"] = letter.partition.partition;
  entry["offset"] = letter.offset;
  entry["timestamp_ms"] = letter.timestamp_ms;
  entry["handler"] = or_null(letter.handler);
  entry["reason"] = letter.reason;
  entry["sqlstate"] = or_null(letter.sqlstate);
  entry["error"] = letter.error;
  entry["attempts"] = letter.attempts;
  entry["replays"] = letter.replays;
  entry["died_at"] = letter.died_at;
  entry["idempotency_key"] = or_null(letter.idempotency_key);
  entry["payload"] = letter.payload;
  entry["value_bytes"] = or_null(letter.value_bytes);
  entry["resolved_at"] = or_null(letter.resolved_at);
  entry["resolved_by"] = or_null(letter.resolved_by);
  entry["resolution"] = or_null(letter.resolution);
  return entry;
}

struct ListArguments {
  std::shared_ptr<LetterArguments> letters;
  std::string status = "unresolved";
  std::int64_t limit = 100;
  bool json = false;
  bool counts = false;
};

void print_counts(const std::vector<ledger::DeadLetterCount>& counts, bool json) {
  if (json) {
    auto array = Json::array();
    for (const auto& count : counts) {
      array.push_back({{"topic", count.topic},
                       {"handler", or_null(count.handler)},
                       {"reason", count.reason},
                       {"status", count.status},
                       {"letters", count.letters},
                       {"oldest", count.oldest}});
    }
    std::cout << indented(array) << '\n';
    return;
  }
  Table table({{"TOPIC"},
               {"HANDLER"},
               {"REASON"},
               {"STATUS"},
               {"LETTERS", Table::Align::kRight},
               {"OLDEST"}});
  for (const auto& count : counts) {
    table.add({count.topic, count.handler.empty() ? "-" : count.handler, count.reason, count.status,
               std::to_string(count.letters), count.oldest});
  }
  std::cout << table.text();
}

int list(const Options& options, const ListArguments& arguments) {
  auto filter = arguments.letters->filter();
  filter.statuses = letter_statuses(arguments.status);
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  const auto counts = view.counts(*session, filter);
  if (arguments.counts) {
    print_counts(counts, arguments.json);
    return kDone;
  }
  const auto letters = view.list(*session, filter, arguments.limit, false);
  if (arguments.json) {
    auto array = Json::array();
    for (const auto& letter : letters)
      array.push_back(describe(letter));
    std::cout << indented(array) << '\n';
    return kDone;
  }
  if (letters.empty()) {
    std::cout << "No dead letters.\n";
    return kDone;
  }
  Table table({{"ID", Table::Align::kRight},
               {"STATUS"},
               {"TOPIC"},
               {"PARTITION", Table::Align::kRight},
               {"OFFSET", Table::Align::kRight},
               {"REASON"},
               {"DIED"},
               {"ERROR"}});
  for (const auto& letter : letters) {
    auto error = letter.error.substr(0, letter.error.find('\n'));
    if (error.size() > 80)
      error = error.substr(0, 77) + "...";
    table.add({std::to_string(letter.id), letter.status, letter.partition.topic,
               std::to_string(letter.partition.partition), std::to_string(letter.offset),
               letter.reason, letter.died_at, error});
  }
  std::cout << table.text();
  std::int64_t total = 0;
  for (const auto& count : counts)
    total += count.letters;
  if (total > static_cast<std::int64_t>(letters.size())) {
    std::cout << fmt::format("\n{} of {}; --limit shows more, --counts adds them up\n",
                             letters.size(), total);
  }
  return kDone;
}

struct ShowArguments {
  std::int64_t id = 0;
  std::string value_to;
  std::string key_to;
  bool json = false;
};

void write_bytes(const std::string& option, const std::string& file, const DeadLetter& letter,
                 const std::optional<std::string>& bytes) {
  if (file.empty())
    return;
  if (!bytes) {
    throw FatalError(fmt::format("{}: dead letter {} has none here (payload {})", option, letter.id,
                                 letter.payload));
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  out.flush();
  if (!out)
    throw FatalError(fmt::format("{}: cannot write {}", option, file));
}

/// Bytes as text where they are text, else in base64.
Json readable(const std::optional<std::string>& bytes) {
  if (!bytes)
    return nullptr;
  auto text = Json(*bytes);
  try {
    static_cast<void>(text.dump());
    return text;
  } catch (const nlohmann::json::exception&) {
    return {{"base64", ledger::base64(*bytes)}};
  }
}

int show(const Options& options, const ShowArguments& arguments) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  ledger::DeadLetterFilter filter;
  filter.ids = {arguments.id};
  filter.statuses = letter_statuses("all");
  const auto found = view.list(*session, filter, 1, true);
  if (found.empty()) {
    throw BadCall(fmt::format("{}/{} has no dead letter {}; `dlq list --status all` lists them",
                              options.kafka.cluster, options.kafka.group, arguments.id));
  }
  const auto& letter = found.front();
  write_bytes("--value-to", arguments.value_to, letter, letter.record_value);
  write_bytes("--key-to", arguments.key_to, letter, letter.record_key);
  auto entry = describe(letter);
  entry["error_detail"] = or_null(letter.error_detail);
  entry["key"] = readable(letter.record_key);
  auto& headers = entry["headers"] = Json::array();
  for (const auto& header : letter.headers)
    headers.push_back({{"name", header.name}, {"value", readable(header.value)}});
  entry["value"] = readable(letter.record_value);
  if (letter.record_value) {
    const auto parsed = Json::parse(*letter.record_value, nullptr, false);
    if (!parsed.is_discarded() && (parsed.is_object() || parsed.is_array()))
      entry["value"] = parsed;
  }
  if (arguments.json) {
    std::cout << indented(entry) << '\n';
    return kDone;
  }
  std::size_t width = 0;
  for (const auto& [name, value] : entry.items())
    width = std::max(width, name.size());
  for (const auto& [name, value] : entry.items()) {
    if (value.is_null() || (value.is_array() && value.empty()))
      continue;
    std::cout << fmt::format("{:<{}}  {}\n", name, width,
                             value.is_string() ? value.get<std::string>() : indented(value));
  }
  return kDone;
}

}  // namespace

ledger::DeadLetterFilter LetterArguments::filter() const {
  ledger::DeadLetterFilter filter;
  filter.ids = ids;
  filter.topic = topic;
  filter.handler = handler;
  filter.reason = reason;
  filter.older_than = age("--older-than", older_than);
  filter.younger_than = age("--younger-than", younger_than);
  return filter;
}

void LetterArguments::require_choice() const {
  if (ids.empty() != all) {
    throw BadCall(all ? "ID and --all exclude each other; give ids, or --all with filters"
                      : "say which dead letters: ID..., or --all, which filters may narrow");
  }
}

std::shared_ptr<LetterArguments> add_letter_arguments(CLI::App& command, bool choose) {
  auto arguments = std::make_shared<LetterArguments>();
  if (choose) {
    command.add_option("ID", arguments->ids, "Dead letters by their numbers");
    command.add_flag("--all", arguments->all, "All that the filters leave");
  }
  command.add_option("--topic", arguments->topic, "Of this topic")->type_name("TOPIC");
  command.add_option("--handler", arguments->handler, "Of this handler")->type_name("NAME");
  command.add_option("--reason", arguments->reason, "With this reason, as `dlq list` names it")
      ->type_name("WORD");
  command.add_option("--older-than", arguments->older_than, "Died longer ago than this")
      ->type_name("DURATION");
  command.add_option("--younger-than", arguments->younger_than, "Died within this time")
      ->type_name("DURATION");
  return arguments;
}

void add_status_argument(CLI::App& command, std::string& status) {
  command
      .add_option("--status", status,
                  "unresolved (dead and parked), dead, parked, replayed, discarded or all")
      ->check(CLI::IsMember({"unresolved", "dead", "parked", "replayed", "discarded", "all"})
                  .description(""))
      ->type_name("WORD");
}

std::vector<std::string> letter_statuses(const std::string& word) {
  if (word == "unresolved")
    return {"dead", "parked"};
  if (word == "all")
    return {"dead", "parked", "replayed", "discarded"};
  return {word};
}

std::string place_of(const DeadLetter& letter) {
  return fmt::format("{} [{}] offset {}", letter.partition.topic, letter.partition.partition,
                     letter.offset);
}

void add_dlq(CLI::App& parser, Commands& commands) {
  auto* dlq = parser.add_subcommand(
      "dlq", "Dead letters: messages that were set aside; look, replay, discard");

  auto* list_command = dlq->add_subcommand("list", "What was set aside, and why");
  const auto list_config = add_config_arguments(*list_command);
  const auto list_arguments = std::make_shared<ListArguments>();
  list_arguments->letters = add_letter_arguments(*list_command, false);
  add_status_argument(*list_command, list_arguments->status);
  list_command->add_option("--limit", list_arguments->limit, "At most so many")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}).description(""))
      ->type_name("N");
  list_command->add_flag("--counts", list_arguments->counts,
                         "Only how many, by topic, handler, reason and status");
  list_command->add_flag("--json", list_arguments->json, "For machines");
  commands.set_action(list_command, [list_config, list_arguments] {
    return list(list_config->load(), *list_arguments);
  });

  auto* show_command = dlq->add_subcommand("show", "One dead letter, with what it carried");
  const auto show_config = add_config_arguments(*show_command);
  const auto show_arguments = std::make_shared<ShowArguments>();
  show_command->add_option("ID", show_arguments->id, "Its number, as `dlq list` prints it")
      ->required();
  show_command
      ->add_option("--value-to", show_arguments->value_to, "Write the value's bytes to a file")
      ->type_name("FILE");
  show_command->add_option("--key-to", show_arguments->key_to, "Write the key's bytes to a file")
      ->type_name("FILE");
  show_command->add_flag("--json", show_arguments->json, "For machines");
  commands.set_action(show_command, [show_config, show_arguments] {
    return show(show_config->load(), *show_arguments);
  });

  add_dlq_replay(*dlq, commands);
  add_dlq_discard(*dlq, commands);
  add_dlq_transfer(*dlq, commands);
  add_dlq_erase(*dlq, commands);
}

}  // namespace pawl::cli
