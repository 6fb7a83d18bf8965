// `dlq export` and `dlq import`: dead letters as JSON lines that keep every byte.
#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "console/bad_call.hpp"
#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/counted.hpp"
#include "console/json.hpp"
#include "console/operator_change.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/changes.hpp"
#include "message/base64.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

constexpr std::size_t kBatch = 200;

Json encoded(const std::optional<std::string>& bytes) {
  return bytes ? Json(message::base64(*bytes)) : Json(nullptr);
}

Json to_json(const DeadLetter& letter) {
  Json line;
  line["topic"] = letter.partition.topic;
  line["topic_id"] = letter.topic_id;
  line["partition"] = letter.partition.partition;
  line["offset"] = letter.offset;
  line["leader_epoch"] = or_null(letter.leader_epoch);
  line["timestamp"] = or_null(letter.timestamp);
  line["status"] = letter.status;
  line["reason"] = letter.reason;
  line["handler"] = letter.handler;
  line["idempotency_key"] = or_null(letter.idempotency_key);
  line["sqlstate"] = letter.sqlstate;
  line["statement"] = letter.statement;
  line["error"] = letter.error;
  line["error_detail"] = letter.error_detail;
  line["attempts"] = letter.attempts;
  line["replays"] = letter.replays;
  line["failed_at"] = letter.died_at;
  line["resolved_at"] = letter.resolved_at;
  line["resolved_by"] = letter.resolved_by;
  line["resolution"] = letter.resolution;
  line["payload"] = letter.payload;
  line["key"] = encoded(letter.record_key);
  line["key_hash"] = encoded(letter.record_key_hash);
  line["message_digest"] = encoded(letter.message_digest);
  line["value"] = encoded(letter.record_value);
  line["value_bytes"] = or_null(letter.value_bytes);
  // In the form in which they are stored; null: they are unknown.
  line["headers"] = letter.headers_unknown
                        ? Json(nullptr)
                        : Json::parse(ledger::headers_json(ledger::views_of(letter.headers)));
  return line;
}

std::optional<std::string> decoded(const Json& value) {
  if (value.is_null())
    return std::nullopt;
  return message::from_base64(value.get<std::string>());
}

template <typename Number>
std::optional<Number> number(const Json& value) {
  if (value.is_null())
    return std::nullopt;
  return value.get<Number>();
}

/// Throws std::exception when the line is no letter of an export.
DeadLetter from_json(const std::string& text) {
  const auto line = Json::parse(text);
  DeadLetter letter;
  letter.partition = {line.at("topic").get<std::string>(),
                      line.at("partition").get<std::int32_t>()};
  letter.topic_id = line.at("topic_id").get<std::string>();
  letter.offset = line.at("offset").get<std::int64_t>();
  letter.leader_epoch = number<std::int32_t>(line.at("leader_epoch"));
  letter.timestamp = timestamp_from(line.at("timestamp"));
  letter.status = line.at("status").get<std::string>();
  letter.reason = line.at("reason").get<std::string>();
  letter.handler = line.at("handler").get<std::string>();
  if (!line.at("idempotency_key").is_null())
    letter.idempotency_key = line.at("idempotency_key").get<std::string>();
  letter.sqlstate = line.at("sqlstate").get<std::string>();
  letter.statement = line.at("statement").get<std::string>();
  letter.error = line.at("error").get<std::string>();
  letter.error_detail = line.at("error_detail").get<std::string>();
  letter.attempts = line.at("attempts").get<std::int64_t>();
  letter.replays = line.at("replays").get<std::int64_t>();
  letter.died_at = line.at("failed_at").get<std::string>();
  letter.payload = line.at("payload").get<std::string>();
  letter.record_key = decoded(line.at("key"));
  letter.record_key_hash = decoded(line.at("key_hash"));
  // An erased letter has none.
  letter.message_digest = decoded(line.value("message_digest", Json(nullptr)));
  letter.record_value = decoded(line.at("value"));
  letter.value_bytes = number<std::int64_t>(line.at("value_bytes"));
  ledger::take_headers(letter, line.at("headers").dump());
  if (letter.status != "dead" && letter.status != "parked" && letter.status != "replayed" &&
      letter.status != "discarded") {
    throw std::invalid_argument(fmt::format("unknown status {}", letter.status));
  }
  return letter;
}

struct ExportArguments {
  std::shared_ptr<LetterArguments> letters;
  std::string status = "unresolved";
  bool json = true;  ///< always: it is the only form
};

int export_letters(const Options& options, const ExportArguments& arguments) {
  auto filter = arguments.letters->filter();
  filter.statuses = letter_statuses(arguments.status);
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  // An import gives new ids, by which the partitions of a record key are ordered.
  view.for_each(
      *session, filter, true,
      [](const DeadLetter& letter) {
        std::cout << to_json(letter).dump() << '\n';
        return std::cout.good();
      },
      ledger::LetterOrder::kById);
  std::cout.flush();
  if (!std::cout)
    throw FatalError("cannot write the export to standard output; it is incomplete");
  return kDone;
}

struct ImportArguments {
  std::string file;
  bool dry_run = false;
  bool json = false;
};

int import_letters(const Options& options, const ImportArguments& arguments) {
  const auto for_each_line = [&](const std::function<void(DeadLetter)>& use) {
    std::ifstream file(arguments.file, std::ios::binary);
    if (!file)
      throw BadCall(fmt::format("cannot read {}", arguments.file));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.empty())
        continue;
      DeadLetter letter;
      try {
        letter = from_json(line);
      } catch (const std::exception& error) {
        throw BadCall(fmt::format(
            "{}:{}: not a dead letter as written by `dlq export`: {}. Nothing was stored",
            arguments.file, number, error.what()));
      }
      use(std::move(letter));
    }
  };
  // All of it is read before any of it is stored.
  std::int64_t unresolved = 0;
  std::int64_t resolved = 0;
  for_each_line([&](const DeadLetter& letter) { ++(letter.unresolved() ? unresolved : resolved); });

  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterChanges changes(options.postgres.schema, consumer.id);
  std::int64_t stored = 0;
  if (!arguments.dry_run) {
    std::vector<DeadLetter> batch;
    const auto store = [&] {
      if (!batch.empty())
        stored += changes.import(*session, batch);
      batch.clear();
    };
    for_each_line([&](DeadLetter letter) {
      if (letter.unresolved())
        batch.push_back(std::move(letter));
      if (batch.size() >= kBatch)
        store();
    });
    store();
  }
  if (arguments.json) {
    std::cout << indented({{"dry_run", arguments.dry_run},
                           {"imported", arguments.dry_run ? Json(nullptr) : Json(stored)},
                           {"already_stored",
                            arguments.dry_run ? Json(nullptr) : Json(unresolved - stored)},
                           {"unresolved", unresolved},
                           {"resolved", resolved}})
              << '\n';
    return kDone;
  }
  std::cout << (arguments.dry_run
                    ? "would import up to " + counted(unresolved, "dead letter", "dead letters")
                    : fmt::format("imported {}, {} stored before",
                                  counted(stored, "dead letter", "dead letters"),
                                  counted(unresolved - stored, "was", "were")));
  if (resolved > 0)
    std::cout << "; " + counted(resolved, "resolved dead letter was omitted",
                                "resolved dead letters were omitted");
  std::cout << '\n';
  return kDone;
}

}  // namespace

void add_dlq_transfer(Command& dlq, Commands& commands) {
  auto* export_command = dlq.add_subcommand(
      "export", "Write dead letters to standard output, one JSON object per line");
  const auto export_config = add_config_arguments(*export_command);
  const auto export_arguments = std::make_shared<ExportArguments>();
  export_arguments->letters = add_letter_arguments(*export_command, false);
  add_status_argument(*export_command, export_arguments->status);
  export_command->add_flag("--json", export_arguments->json, "Print JSON; it is the only format");
  commands.set_action(export_command, [export_config, export_arguments] {
    return export_letters(export_config->load(), *export_arguments);
  });

  auto* import_command = dlq.add_subcommand(
      "import", "Store the unresolved dead letters of an export that are not stored yet");
  const auto import_config = add_config_arguments(*import_command);
  const auto import_arguments = std::make_shared<ImportArguments>();
  import_command->add_option("FILE", import_arguments->file, "File written by dlq export")
      ->required();
  import_command->add_flag("--dry-run", import_arguments->dry_run,
                           "Validate the file without changing anything");
  import_command->add_json_flag(import_arguments->json);
  commands.set_action(import_command, [import_config, import_arguments] {
    return import_letters(import_config->load(), *import_arguments);
  });
}

}  // namespace pawl::cli
