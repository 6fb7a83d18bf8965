// `dlq show`: one dead letter, with what it carried.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include "config/invocation.hpp"
#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/decoded.hpp"
#include "console/operator_change.hpp"
#include "console/printable.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
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

/// For machines whole, unless they ask for less.
Json shown(std::optional<std::string_view> bytes, const ShowArguments& arguments) {
  if (arguments.json) {
    return readable(bytes, arguments.max_bytes ? static_cast<std::size_t>(*arguments.max_bytes)
                                               : std::string_view::npos);
  }
  const auto most = static_cast<std::size_t>(arguments.max_bytes.value_or(kShown));
  return bytes && bytes->size() > most ? Json(to_text(decode(bytes, most))) : readable(bytes);
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
    throw BadCall(fmt::format(
        "consumer {}/{} has no dead letter {}. Dead letters are listed by: {} --status all",
        options.kafka.cluster, options.kafka.group, arguments.id,
        command_text(options.invocation, "dlq list")));
  }
  const auto& letter = found.front();
  write_bytes("--value-to", arguments.value_to, letter, letter.record_value);
  write_bytes("--key-to", arguments.key_to, letter, letter.record_key);
  auto entry = describe(letter);
  entry["error_detail"] = or_null(letter.error_detail);
  auto& headers = entry["headers"] = Json::array();
  for (const auto& header : letter.headers)
    headers.push_back({{"name", readable(header.name)}, {"value", shown(header.value, arguments)}});
  if (letter.headers_unknown)
    headers = arguments.json ? Json(nullptr) : Json("unknown: Kafka's client cannot read them");
  // As it came: a number read and printed again may be another one.
  entry["value"] = shown(letter.record_value, arguments);
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
    // A value and an error may be of several lines.
    std::cout << fmt::format(
        "{:<{}}  {}\n", name, width,
        printable_lines(value.is_string() ? value.get<std::string>() : indented(value)));
  }
  return kDone;
}

}  // namespace

void add_dlq_show(Command& dlq, Commands& commands) {
  auto* show_command = dlq.add_subcommand("show", "One dead letter, with what it carried");
  const auto show_config = add_config_arguments(*show_command);
  const auto show_arguments = std::make_shared<ShowArguments>();
  show_command->add_option("ID", show_arguments->id, "Its number, as `dlq list` prints it")
      ->required();
  show_command
      ->add_option("--value-to", show_arguments->value_to, "Write the value's bytes to a file")
      ->type_name("FILE");
  show_command->add_option("--key-to", show_arguments->key_to, "Write the key's bytes to a file")
      ->type_name("FILE");
  show_command
      ->add_option("--max-bytes", show_arguments->max_bytes,
                   "Bytes shown of the value and of each header (4096; with --json all)")
      ->within(1, kMostBytes)
      ->type_name("N");
  show_command->add_flag("--json", show_arguments->json, "For machines");
  commands.set_action(show_command, [show_config, show_arguments] {
    return show(show_config->load(), *show_arguments);
  });
}

}  // namespace pawl::cli
