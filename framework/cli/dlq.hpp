#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "ledger/dead_letter_view.hpp"
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
std::shared_ptr<LetterArguments> add_letter_arguments(CLI::App& command, bool choose);

/// `--status WORD` into `status`, whose value is the default.
void add_status_argument(CLI::App& command, std::string& status);
/// The stored statuses that such a word means.
std::vector<std::string> letter_statuses(const std::string& word);

/// "topic [partition] offset N"
std::string place_of(const ledger::DeadLetter& letter);

}  // namespace pawl::cli
