// `dlq discard`: gives dead letters up, with a reason.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <set>

#include "console/config_arguments.hpp"
#include "console/connections.hpp"
#include "console/operator_change.hpp"
#include "dead_letters/commands.hpp"
#include "dead_letters/dlq.hpp"
#include "dead_letters/store/changes.hpp"

namespace pawl::cli {
namespace {

struct Arguments {
  std::shared_ptr<LetterArguments> letters;
  std::string because;
  bool dry_run = false;
  bool json = false;
};

int discard(const Options& options, const Arguments& arguments) {
  arguments.letters->require_choice();
  const auto filter = arguments.letters->filter();
  const auto session = connect_database(options);
  const auto consumer = require_consumer(*session, options);
  const ledger::DeadLetterView view(options.postgres.schema, consumer.id);
  const ledger::DeadLetterChanges changes(options.postgres.schema, consumer.id);
  std::int64_t done = 0;
  auto listed = Json::array();
  std::set<std::int64_t> matched;
  std::map<std::pair<std::string, std::string>, std::int64_t> last_of_key;
  view.for_each(*session, filter, false, [&](const ledger::DeadLetter& letter) {
    matched.insert(letter.id);
    if (arguments.dry_run && arguments.json) {
      listed.push_back(describe(letter));
      ++done;
    } else if (arguments.dry_run) {
      std::cout << fmt::format("would discard {}: {}, {}\n", letter.id, place_of(letter),
                               letter.reason);
      ++done;
    } else {
      // One transaction a letter, so that two commands at once share the work instead of failing.
      const bool discarded = changes.discard(*session, letter.id, arguments.because);
      done += discarded ? 1 : 0;
      if (discarded && letter.record_key_hash)
        last_of_key[{letter.partition.topic, *letter.record_key_hash}] = letter.id;
    }
    return true;
  });
  if (!arguments.json) {
    std::cout << fmt::format("{}{} dead letter{}\n",
                             arguments.dry_run ? "would discard " : "discarded ", done,
                             done == 1 ? "" : "s");
  }
  std::map<std::string, std::int64_t> left_parked;
  for (const auto& [key, letter] : last_of_key)
    left_parked[key.first] += view.left_parked(*session, letter);
  auto parked = Json::array();
  for (const auto& [topic, messages] : left_parked) {
    if (messages > 0)
      parked.push_back({{"topic", topic}, {"messages", messages}});
    if (messages > 0 && !arguments.json)
      std::cout << left_parked_text(options.invocation, topic, messages) << '\n';
  }
  if (arguments.json) {
    std::cout << indented({{"dry_run", arguments.dry_run},
                           {"discarded", done},
                           {"dead_letters", std::move(listed)},
                           {"left_parked", std::move(parked)}})
              << '\n';
  }
  if (explain_unmatched(*session, options.invocation, view, *arguments.letters, matched,
                        "discarded"))
    return done == 0 ? kBadCall : kFailed;
  return kDone;
}

}  // namespace

void add_dlq_discard(Command& dlq, Commands& commands) {
  auto* command = dlq.add_subcommand(
      "discard", "Discard dead letters; they stay in the table until their retention expires");
  const auto config = add_config_arguments(*command);
  const auto arguments = std::make_shared<Arguments>();
  arguments->letters = add_letter_arguments(*command, true);
  command->add_option("--because", arguments->because, "Reason, stored with the dead letter")
      ->required()
      ->reason();
  command->add_flag("--dry-run", arguments->dry_run,
                    "Show what would be discarded without changing anything");
  command->add_json_flag(arguments->json);
  commands.set_action(command, [config, arguments] { return discard(config->load(), *arguments); });
}

}  // namespace pawl::cli
