// `dlq show`: one dead letter with its message.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <vector>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/operator_change.hpp"
#include "console/printable.hpp"
#include "console/terminal.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/dead_letters.hpp"
#include "ledger/instant.hpp"
#include "message/traceparent.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

struct ShowArguments {
  std::int64_t id = 0;
  std::string value_to;
  std::string key_to;
  std::optional<std::int64_t> max_bytes;
  bool json = false;
};

/// Of a value or a header on a terminal, unless --max-bytes says otherwise.
constexpr std::int64_t kShown = 4096;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30U;

void write_bytes(const std::string& option, const std::string& file, const DeadLetter& letter,
                 const std::optional<std::string>& bytes) {
  if (file.empty())
    return;
  if (!bytes) {
    throw FatalError(fmt::format("{}: dead letter {} has no stored bytes (payload {})", option,
                                 letter.id, letter.payload));
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(bytes->data(), static_cast<std::streamsize>(bytes->size()));
  out.flush();
  if (!out)
    throw FatalError(fmt::format("{}: cannot write {}", option, file));
}

/// For machines: all bytes, unless --max-bytes is given.
Json shown(std::optional<std::string_view> bytes, const ShowArguments& arguments) {
  return readable(bytes, arguments.max_bytes ? static_cast<std::size_t>(*arguments.max_bytes)
                                             : std::string_view::npos);
}

/// For people: JSON with a line per member, text, or hexadecimal digits.
std::string value_text(std::string_view bytes, std::size_t most) {
  const auto decoded = decode(bytes, most);
  const auto text = readable(bytes.substr(0, most));
  return (decoded.form == "json" ? indented_json(decoded.text)
          : text.is_string()     ? text.get<std::string>()
                                 : decoded.text) +
         (!decoded.cut ? "" : fmt::format("... (cut; --max-bytes {} shows all)", decoded.bytes));
}

/// The facts of one dead letter, a label before each.
class Page {
 public:
  explicit Page(const Terminal& terminal) : terminal_(terminal) {}

  void add(std::string_view label, const std::string& text) {
    if (!text.empty())
      text_ += padded(label, kLabel - 1) + ' ' +
               wrapped(printable_lines(text), terminal_.columns, kLabel) + '\n';
  }
  /// A line of its own below the last label, which is not wrapped.
  void command(std::string_view label, const std::string& command) {
    text_ += padded(label, kLabel - 1) + ' ' + printable(command) + '\n';
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static constexpr std::size_t kLabel = 20;

  const Terminal& terminal_;
  std::string text_;
};

std::string status_text(const DeadLetter& letter) {
  if (letter.shown_status() != "scheduled")
    return letter.status;
  return fmt::format("scheduled; retry {} {}", letter.retries + 1,
                     letter.due_at == "turn"
                         ? std::string("after earlier messages of its record key")
                         : fmt::format("due at {} UTC", date_time(letter.due_at)));
}

std::string handler_text(const DeadLetter& letter) {
  std::vector<std::string> parts;
  if (!letter.handler.empty())
    parts.push_back(letter.handler);
  parts.push_back(counted(letter.attempts, "attempt", "attempts"));
  if (letter.retries > 0)
    parts.push_back(counted(letter.retries, "retry", "retries"));
  if (letter.replays > 0)
    parts.push_back(counted(letter.replays, "replay", "replays"));
  return fmt::format("{}", fmt::join(parts, "   "));
}

std::string page_text(const InvocationOptions& invocation, const DeadLetter& letter,
                      std::size_t most) {
  const auto terminal = terminal_of(STDOUT_FILENO);
  Page page(terminal);
  page.add(fmt::format("Dead letter {}", letter.id), status_text(letter));
  page.add("Message",
           fmt::format("{}{}   key {}", place_of(letter),
                       letter.timestamp
                           ? fmt::format("   {} UTC", date_time(ledger::to_string(ledger::Instant(
                                                          letter.timestamp->time_since_epoch()))))
                           : "",
                       key_text(letter.record_key, letter.record_key_hash)));
  page.add("Handler", handler_text(letter));
  page.add("Error",
           fmt::format(
               "{}{}{}", letter.reason == ledger::dead_reason::kError ? "" : letter.reason + "  ",
               letter.sqlstate.empty() ? "" : letter.sqlstate + "  ", letter.located_error()));
  page.add("", letter.error_detail);
  page.add("Failed at", date_time(letter.died_at) + " UTC");
  page.add("Idempotency key", letter.idempotency_key.value_or(""));
  page.add("Trace", letter.traceparent.empty()
                        ? std::string()
                        : std::string(message::trace_id(letter.traceparent)));
  if (!letter.resolved_at.empty()) {
    page.add("Resolved",
             fmt::format("{} UTC by {}{}", date_time(letter.resolved_at), letter.resolved_by,
                         letter.resolution.empty() ? "" : ": " + letter.resolution));
  }
  if (letter.headers_unknown)
    page.add("Headers", "unknown: Kafka's client cannot read them");
  std::size_t names = 0;
  for (const auto& header : letter.headers)
    names = std::max(names, width_of(printable(header.name)));
  std::string_view label = "Headers";
  for (const auto& header : letter.headers) {
    page.add(label, fmt::format("{}  {}", padded(printable(header.name), names),
                                header.value ? value_text(*header.value, most) : "null"));
    label = "";
  }
  if (letter.record_value) {
    page.add(fmt::format("Value ({})", counted(std::ssize(*letter.record_value), "byte", "bytes")),
             letter.record_value->empty() ? "-" : value_text(*letter.record_value, most));
  } else {
    page.add("Value",
             letter.value_bytes
                 ? fmt::format("{}, not stored (payload {})",
                               counted(*letter.value_bytes, "byte", "bytes"), letter.payload)
                 : std::string("null"));
  }
  if (letter.unresolved()) {
    page.command("Next", fmt::format("{} {}", command_text(invocation, "dlq replay"), letter.id));
    page.command("", fmt::format("{} {} --because TEXT", command_text(invocation, "dlq discard"),
                                 letter.id));
  }
  return page.text();
}

int show(const Options& options, const ShowArguments& arguments) {
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  ledger::DeadLetterFilter filter;
  filter.ids = {arguments.id};
  filter.statuses = letter_statuses("all");
  auto found = view.list(*session, filter, 1, true);
  view.name_left_parked(*session, found);
  if (found.empty()) {
    throw BadCall(
        fmt::format("consumer {}/{} has no dead letter {}. List dead letters:\n  {} --status all",
                    options.kafka.cluster, options.kafka.group, arguments.id,
                    command_text(options.invocation, "dlq list")));
  }
  const auto& letter = found.front();
  write_bytes("--value-to", arguments.value_to, letter, letter.record_value);
  write_bytes("--key-to", arguments.key_to, letter, letter.record_key);
  if (!arguments.json) {
    std::cout << page_text(options.invocation, letter,
                           static_cast<std::size_t>(arguments.max_bytes.value_or(kShown)));
    return kDone;
  }
  auto entry = describe(letter);
  entry["error_detail"] = or_null(letter.error_detail);
  auto& headers = entry["headers"] = Json::array();
  for (const auto& header : letter.headers)
    headers.push_back({{"name", readable(header.name)}, {"value", shown(header.value, arguments)}});
  if (letter.headers_unknown)
    headers = nullptr;
  // As it came: a number read and printed again may be another one.
  entry["value"] = shown(letter.record_value, arguments);
  std::cout << indented(entry) << '\n';
  return kDone;
}

}  // namespace

void add_dlq_show(Command& dlq, Commands& commands) {
  auto* show_command =
      dlq.add_subcommand("show", "Show one dead letter with error, headers, key, and value");
  const auto show_config = add_config_arguments(*show_command);
  const auto show_arguments = std::make_shared<ShowArguments>();
  show_command->add_option("ID", show_arguments->id, "ID, as printed by dlq list")->required();
  show_command
      ->add_option("--value-to", show_arguments->value_to, "Write the bytes of the value to a file")
      ->type_name("FILE");
  show_command
      ->add_option("--key-to", show_arguments->key_to,
                   "Write the bytes of the record key to a file")
      ->type_name("FILE");
  show_command
      ->add_option("--max-bytes", show_arguments->max_bytes,
                   "Limit of bytes of the value and each header (default: 4096; with --json: all)")
      ->within(1, kMostBytes)
      ->type_name("N");
  show_command->add_json_flag(show_arguments->json);
  commands.set_action(show_command, [show_config, show_arguments] {
    return show(show_config->load(), *show_arguments);
  });
}

}  // namespace pawl::cli
