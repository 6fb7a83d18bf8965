// `partitions peek`: shows the next message, or the message at an offset.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/decoded.hpp"
#include "console/find_message.hpp"
#include "console/operator_change.hpp"
#include "console/partition_view.hpp"
#include "ledger/instant.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::shared_ptr<PartitionArguments> partition;
  std::optional<std::int64_t> offset;
  std::size_t max_bytes = 4096;
  bool json = false;
};

/// The next message of the consumer, unless an offset was given: then PostgreSQL is not asked.
std::int64_t offset_of(const Options& options, const Arguments& arguments) {
  if (arguments.offset)
    return *arguments.offset;
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const auto row = choose_rows(*session, options, consumer, *arguments.partition).front();
  return row.halt.message_offset.value_or(row.stored.next());
}

void print(const Message& message, const Arguments& arguments) {
  if (arguments.json) {
    const auto value = message.has_value() ? std::optional(message.value()) : std::nullopt;
    const auto as_json = [&](std::optional<std::string_view> bytes) {
      return readable(bytes, arguments.max_bytes);
    };
    Json json;
    json["topic"] = std::string(message.topic());
    json["topic_id"] = or_null(std::string(message.topic_id()));
    json["partition"] = message.partition();
    json["offset"] = message.offset();
    json["timestamp"] = or_null(message.timestamp());
    auto& headers = json["headers"] = Json::array();
    for (const auto& header : message.headers()) {
      headers.push_back({{"name", as_json(header.name)}, {"value", as_json(header.value)}});
    }
    if (message.headers_unreadable())
      headers = nullptr;
    json["key"] = as_json(message.key());
    json["value"] = as_json(value);
    json["value_bytes"] = value ? Json(value->size()) : Json(nullptr);
    std::cout << indented(json) << '\n';
    return;
  }
  const TopicPartition partition{std::string(message.topic()), message.partition()};
  const auto timestamp = message.timestamp();
  std::cout << fmt::format(
      "{}   {}\n{}", name_of(partition, message.offset()),
      timestamp
          ? date_time(ledger::to_string(ledger::Instant(timestamp->time_since_epoch()))) + " UTC"
          : std::string("no timestamp"),
      parts_text(message, arguments.max_bytes));
}

int peek(const Options& options, const Arguments& arguments) {
  const TopicPartition partition{arguments.partition->topic,
                                 arguments.partition->partition.value_or(0)};
  const MessagePlace place{partition, offset_of(options, arguments), arguments.offset.has_value()};
  // Outlives the record: a client does not end while one of its messages is held.
  const auto client = make_client_of_one_message(options);
  const auto found = find_message(*client, options.invocation, place);
  print(found.record.view(partition.topic, found.topic_id), arguments);
  return kDone;
}

}  // namespace

void add_partitions_peek(Command& partitions, Commands& commands) {
  auto* command = partitions.add_subcommand(
      "peek", "Show headers, key, and value of the next message, or of the halted one");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  arguments->partition = add_partition_arguments(*command, false);
  command->add_option("--offset", arguments->offset, "Show the message at this offset instead")
      ->not_negative()
      ->type_name("N");
  command
      ->add_option("--max-bytes", arguments->max_bytes,
                   "Limit of bytes of the value, the key, and each header")
      ->within(1, kMostShown)
      ->type_name("N")
      ->shows_default();
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return peek(config->load(), *arguments); });
}

}  // namespace pawl::cli
