#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "console/command.hpp"
#include "console/json.hpp"
#include "dead_letters/store/view.hpp"
#include "pawl/options.hpp"

namespace pawl::cli {

/// Which dead letters a command is about, as the command line says it.
struct LetterArguments {
  std::vector<std::int64_t> ids;
  std::string topic;
  std::string handler;
  std::string reason;
  std::string older_than;
  std::string younger_than;
  bool all = false;

  /// Throws BadCall for what is no duration.
  [[nodiscard]] ledger::DeadLetterFilter filter() const;
  /// Throws BadCall unless ids, or --all (alone or with filters) were given.
  void require_choice() const;
};

/// The filters; with `choose` also ID... and --all.
std::shared_ptr<LetterArguments> add_letter_arguments(Command& command, bool choose);

/// `--status WORD` into `status`, whose value is the default.
void add_status_argument(Command& command, std::string& status);
/// The statuses, as they are shown, that such a word means.
std::vector<std::string> letter_statuses(const std::string& word);

/// Says on stderr why ids that the command line names are not among those that were `matched`.
/// Whether one of them is no letter that has the `wanted` status already.
bool explain_unmatched(postgres::Session& session, const InvocationOptions& invocation,
                       const ledger::DeadLetterView& view, const LetterArguments& arguments,
                       const std::set<std::int64_t>& matched, const std::string& wanted);

/// A letter for machines, without what it carried.
Json describe(const ledger::DeadLetter& letter);
/// A group of dead letters for machines.
Json describe(const ledger::DeadLetterCount& count);
/// A record key in a table: cut; its hash where it is not stored.
std::string key_text(const std::optional<std::string>& key, const std::optional<std::string>& hash);
/// For a table.
std::string first_line(const std::string& text);
/// In one line: "23503 orders_account_fkey" of a violated constraint, otherwise the SQLSTATE and
/// the statement, if there are, and the first line of the error.
std::string short_error(const std::string& sqlstate, const std::string& statement,
                        const std::string& error);

/// "topic[partition]@offset"
std::string place_of(const ledger::DeadLetter& letter);

/// That `messages` of a topic are parked behind no dead letter, and the command that replays them.
std::string left_parked_text(const InvocationOptions& invocation, const std::string& topic,
                             std::int64_t messages);

}  // namespace pawl::cli
