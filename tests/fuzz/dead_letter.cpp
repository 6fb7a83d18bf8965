// Lines that `dlq import` reads, and the files that `pawl try` reads.
#include <limits>

#include "cli/message_file.hpp"
#include "console/json.hpp"
#include "dead_letters/exported_letter.hpp"
#include "fuzz.hpp"

using pawl::cli::Json;
using pawl::fuzzing::require;

namespace {

/// A number that is taken is the one that is written.
void check_number(const Json& line, const char* name, std::int64_t taken) {
  const auto& written = line.at(name);
  require(written.is_number_integer(), "an integer is an integer", name);
  require(written.dump() == std::to_string(taken), "an integer keeps its value", name);
}

void check_import(const std::string& line) {
  pawl::ledger::DeadLetter letter;
  try {
    letter = pawl::cli::imported(line);
  } catch (const std::exception&) {
    return;
  }
  const auto written = Json::parse(line);
  check_number(written, "partition", letter.partition.partition);
  check_number(written, "offset", letter.offset);
  check_number(written, "attempts", letter.attempts);
  check_number(written, "replays", letter.replays);
  if (letter.leader_epoch)
    check_number(written, "leader_epoch", *letter.leader_epoch);
  if (letter.value_bytes)
    check_number(written, "value_bytes", *letter.value_bytes);
  if (letter.timestamp && written.at("timestamp").is_number())
    check_number(written, "timestamp", letter.timestamp->time_since_epoch().count());
  for (const auto* text : {&letter.partition.topic, &letter.topic_id, &letter.status,
                           &letter.reason, &letter.handler, &letter.sqlstate, &letter.statement,
                           &letter.error, &letter.error_detail, &letter.died_at, &letter.payload})
    require(text->find('\0') == std::string::npos, "a text can be stored");
  // Exported again, it is the same dead letter.
  const auto once = pawl::cli::exported(letter).dump();
  const auto again = pawl::cli::exported(pawl::cli::imported(once)).dump();
  require(once == again, "an export keeps the dead letter", once);
  for (const auto* name :
       {"topic", "topic_id", "partition", "offset", "leader_epoch", "status", "reason", "handler",
        "error", "attempts", "failed_at", "payload", "key", "key_hash", "value", "value_bytes"})
    require(Json::parse(once).at(name) == written.at(name), "an import keeps the line", name);
}

void check_message(const std::string& text) {
  try {
    const auto file = pawl::cli::MessageFile::parse(text, "m.json");
    const auto message = file.view();
    const auto written = Json::parse(text);
    require(message.topic() == written.at("topic").get<std::string>(), "a message has its topic");
    require(message.has_value() == !written.at("value").is_null(), "a tombstone is null");
    if (const auto partition = written.find("partition");
        partition != written.end() && !partition->is_null())
      check_number(written, "partition", message.partition());
    if (const auto offset = written.find("offset"); offset != written.end() && !offset->is_null())
      check_number(written, "offset", message.offset());
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace

void fuzz(std::string_view input) {
  const std::string text(input);
  check_import(text);
  check_message(text);
}
