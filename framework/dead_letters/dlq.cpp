// `dlq list`, and what the subcommands of `dlq` share.
#include "dead_letters/dlq.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "config/invocation.hpp"
#include "config/units.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "console/printable.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "message/hexadecimal.hpp"
#include "message/traceparent.hpp"
#include "text/located.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

constexpr std::size_t kLongestKey = 40;
constexpr std::size_t kHashDigits = 16;

std::optional<std::chrono::seconds> age(const std::string& option, const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const auto duration = config::parse_duration(text);
  if (!duration)
    throw BadCall(fmt::format("invalid value for {}: \"{}\". Use a duration: 90s, 15m, 12h, or 7d",
                              option, text));
  return std::chrono::duration_cast<std::chrono::seconds>(*duration);
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
    for (const auto& count : counts)
      array.push_back(describe(count));
    std::cout << indented({{"counts", std::move(array)}}) << '\n';
    return;
  }
  Table table({{"TOPIC"},
               {"HANDLER"},
               {"REASON"},
               {"STATUS"},
               {"MESSAGES", Table::Align::kRight},
               {"OLDEST"},
               {"NEXT DUE"}});
  for (const auto& count : counts) {
    table.add({count.topic, count.handler.empty() ? "-" : count.handler, count.reason, count.status,
               grouped(count.letters), date_time(count.oldest),
               count.next_due.empty() ? "-" : date_time(count.next_due)});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
}

/// When a message is retried automatically.
std::string due_text(const DeadLetter& letter) {
  if (letter.due_at.empty())
    return "-";
  return letter.due_at == "turn" ? "after earlier" : date_time(letter.due_at);
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
  auto letters = view.list(*session, filter, arguments.limit, false);
  view.name_left_parked(*session, letters);
  if (arguments.json) {
    auto array = Json::array();
    for (const auto& letter : letters)
      array.push_back(describe(letter));
    std::int64_t matching = 0;
    for (const auto& count : counts)
      matching += count.letters;
    std::cout << indented({{"matching", matching}, {"dead_letters", std::move(array)}}) << '\n';
    return kDone;
  }
  if (letters.empty()) {
    std::cout << "No dead letters.\n";
    return kDone;
  }
  Table table({{"ID", Table::Align::kRight},
               {"STATUS"},
               {"MESSAGE"},
               {"KEY"},
               {"HANDLER"},
               {"REASON"},
               {"FAILED"},
               {"DUE"},
               {"ERROR"}});
  for (const auto& letter : letters) {
    table.add({std::to_string(letter.id), letter.shown_status(), place_of(letter),
               key_text(letter.record_key, letter.record_key_hash),
               letter.handler.empty() ? "-" : letter.handler, letter.reason,
               date_time(letter.died_at), due_text(letter), first_line(letter.located_error())});
  }
  std::cout << table.text(terminal_of(STDOUT_FILENO).columns);
  std::int64_t total = 0;
  for (const auto& count : counts)
    total += count.letters;
  if (total > static_cast<std::int64_t>(letters.size())) {
    std::cout << fmt::format(
        "\n{} of {} dead letters; --limit N shows more, --counts shows totals\n",
        grouped(static_cast<std::int64_t>(letters.size())), grouped(total));
  }
  return kDone;
}

}  // namespace

std::string key_text(const std::optional<std::string>& key,
                     const std::optional<std::string>& hash) {
  if (!key)
    return hash ? "sha256:" + message::hexadecimal(*hash).substr(0, kHashDigits) + "..." : "-";
  const std::string text(head(*key, kLongestKey));
  return text.size() < key->size() ? text + "..." : text;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string short_error(const std::string& sqlstate, const std::string& statement,
                        const std::string& error) {
  constexpr std::string_view kConstraint = " constraint \"";
  auto line = first_line(texts::located(statement, error));
  if (sqlstate.empty())
    return line;
  // Class 23: integrity constraint violation.
  const auto begin = sqlstate.starts_with("23") ? line.find(kConstraint) : std::string::npos;
  if (begin != std::string::npos) {
    const auto name = begin + kConstraint.size();
    if (const auto end = line.find('"', name); end != std::string::npos)
      return fmt::format("{} {}", sqlstate, line.substr(name, end - name));
  }
  return fmt::format("{} {}", sqlstate, line);
}

Json describe(const ledger::DeadLetterCount& count) {
  return {{"topic", count.topic},
          {"handler", or_null(count.handler)},
          {"reason", count.reason},
          {"status", count.status},
          {"messages", count.letters},
          {"oldest_failed_at", count.oldest},
          {"scheduled", count.retried},
          {"next_due_at", or_null(count.next_due)},
          {"sqlstate", or_null(count.sqlstate)},
          {"statement", or_null(count.statement)},
          {"error", count.error}};
}

Json describe(const DeadLetter& letter) {
  Json entry;
  entry["id"] = letter.id;
  entry["status"] = letter.shown_status();
  entry["topic"] = letter.partition.topic;
  entry["partition"] = letter.partition.partition;
  entry["offset"] = letter.offset;
  entry["timestamp"] = or_null(letter.timestamp);
  entry["handler"] = or_null(letter.handler);
  entry["reason"] = letter.reason;
  entry["sqlstate"] = or_null(letter.sqlstate);
  entry["statement"] = or_null(letter.statement);
  entry["error"] = letter.error;
  entry["attempts"] = letter.attempts;
  entry["replays"] = letter.replays;
  entry["failed_at"] = letter.died_at;
  entry["retries"] = letter.retries;
  const bool in_turn = letter.due_at == "turn";
  entry["due_at"] = or_null(in_turn ? "" : letter.due_at);
  entry["due_in_turn"] = in_turn;
  entry["key"] = readable(letter.record_key);
  entry["key_sha256"] =
      letter.record_key_hash ? Json(message::hexadecimal(*letter.record_key_hash)) : Json(nullptr);
  entry["idempotency_key"] = or_null(letter.idempotency_key);
  entry["payload"] = letter.payload;
  entry["value_bytes"] = or_null(letter.value_bytes);
  entry["traceparent"] = or_null(letter.traceparent);
  entry["trace_id"] = letter.traceparent.empty()
                          ? Json(nullptr)
                          : Json(std::string(message::trace_id(letter.traceparent)));
  entry["resolved_at"] = or_null(letter.resolved_at);
  entry["resolved_by"] = or_null(letter.resolved_by);
  entry["resolution"] = or_null(letter.resolution);
  return entry;
}

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
    throw BadCall(all ? "ID and --all exclude each other. Use IDs, or --all with filters"
                      : "ID... or --all is required; filters restrict --all");
  }
}

std::shared_ptr<LetterArguments> add_letter_arguments(Command& command, bool choose) {
  auto arguments = std::make_shared<LetterArguments>();
  if (choose) {
    command.add_option("ID", arguments->ids, "IDs, as printed by dlq list");
    command.add_flag("--all", arguments->all, "All dead letters that match the filters");
  }
  command.add_option("-t,--topic", arguments->topic, "Only this topic")->type_name("TOPIC");
  command.add_option("--handler", arguments->handler, "Only this handler")->type_name("NAME");
  command.add_option("--reason", arguments->reason, "Only this reason, as printed by dlq list")
      ->one_of({std::begin(ledger::dead_reason::kAll), std::end(ledger::dead_reason::kAll)})
      ->type_name("WORD");
  command.add_option("--older-than", arguments->older_than, "Only dead letters that are older")
      ->type_name("DURATION");
  command
      .add_option("--younger-than", arguments->younger_than, "Only dead letters that are younger")
      ->type_name("DURATION");
  return arguments;
}

void add_status_argument(Command& command, std::string& status) {
  command
      .add_option("--status", status,
                  "unresolved, scheduled, dead, parked, replayed, discarded, or all")
      ->one_of({"unresolved", "scheduled", "dead", "parked", "replayed", "discarded", "all"})
      ->type_name("WORD")
      ->shows_default();
}

std::vector<std::string> letter_statuses(const std::string& word) {
  if (word == "unresolved")
    return {"scheduled", "dead", "parked"};
  if (word == "all")
    return {"scheduled", "dead", "parked", "replayed", "discarded"};
  return {word};
}

bool explain_unmatched(postgres::Session& session, const InvocationOptions& invocation,
                       const ledger::DeadLetterView& view, const LetterArguments& arguments,
                       const std::set<std::int64_t>& matched, const std::string& wanted) {
  ledger::DeadLetterFilter filter;
  filter.statuses = letter_statuses("all");
  std::ranges::copy_if(arguments.ids, std::back_inserter(filter.ids),
                       [&](std::int64_t id) { return !matched.contains(id); });
  if (filter.ids.empty())
    return false;
  std::set<std::int64_t> unknown(filter.ids.begin(), filter.ids.end());
  bool unfulfilled = false;
  view.for_each(session, filter, false, [&](const DeadLetter& letter) {
    unknown.erase(letter.id);
    std::cerr << fmt::format("{}: {}: {}\n", letter.id, place_of(letter),
                             letter.unresolved() ? "does not match the filters"
                                                 : fmt::format("is already {}", letter.status));
    unfulfilled = unfulfilled || letter.status != wanted;
    return true;
  });
  for (const auto id : unknown) {
    std::cerr << fmt::format(
        "error: dead letter {} does not exist. List dead letters:\n  {} --status all\n", id,
        command_text(invocation, "dlq list"));
  }
  return unfulfilled || !unknown.empty();
}

std::string left_parked_text(const InvocationOptions& invocation, const std::string& topic,
                             std::int64_t messages) {
  return fmt::format(
      "{} of {} {} still parked, and {} until an operator replays {}:\n  {} --all "
      "--topic {} --reason parked",
      messages == 1 ? "1 later message of the same record key"
                    : fmt::format("{} later messages of the same record keys", messages),
      topic, messages == 1 ? "is" : "are", messages == 1 ? "waits" : "wait",
      messages == 1 ? "it" : "them", command_text(invocation, "dlq replay"), topic);
}

std::string place_of(const DeadLetter& letter) {
  return name_of(letter.partition, letter.offset);
}

void add_dlq(Command& parser, Commands& commands) {
  auto* dlq = parser.add_subcommand("dlq", "Inspect, replay, or discard dead letters");

  auto* list_command =
      dlq->add_subcommand("list", "List dead letters with handler, status, and error");
  const auto list_config = add_config_arguments(*list_command);
  const auto list_arguments = std::make_shared<ListArguments>();
  list_arguments->letters = add_letter_arguments(*list_command, false);
  add_status_argument(*list_command, list_arguments->status);
  list_command->add_option("--limit", list_arguments->limit, "Limit of dead letters")
      ->at_most_entries()
      ->shows_default();
  list_command->add_flag("--counts", list_arguments->counts,
                         "Only counts by topic, handler, reason, and status");
  list_command->add_json_flag(list_arguments->json);
  commands.set_action(list_command, [list_config, list_arguments] {
    return list(list_config->load(), *list_arguments);
  });

  add_dlq_show(*dlq, commands);
  add_dlq_parked(*dlq, commands);
  add_dlq_replay(*dlq, commands);
  add_dlq_discard(*dlq, commands);
  add_dlq_transfer(*dlq, commands);
  add_dlq_erase(*dlq, commands);
}

}  // namespace pawl::cli
