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
#include "dead_letters/exported_letter.hpp"
#include "dead_letters/store/changes.hpp"
#include "pawl/errors.hpp"

namespace pawl::cli {
namespace {

using ledger::DeadLetter;

constexpr std::size_t kBatch = 200;

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
        std::cout << exported(letter).dump() << '\n';
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
        letter = imported(line);
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
