#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>

#include "pawl/handler.hpp"

namespace pawl::cli {

/// The process exit codes of every command; docs/operations.md and --help list them.
/// `run` adds those of pawl::RunResult, and 128 + signal number when a second signal ends it.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,         ///< the reason is on stderr
  kBadCall = 2,        ///< the command line or the configuration is wrong; nothing was changed
  kNeedsSomebody = 3,  ///< `status --exit-code`: it could look, and something needs a person
};

/// The program that the commands belong to: its name on the command line, and its handlers.
struct Program {
  std::string name;
  const Registry& registry;
};

/// The subcommands being set up. Each add_...() hangs its subcommand into a parser and stores what
/// to do when the user chose it; the action returns the exit code and may throw.
class Commands {
 public:
  explicit Commands(Program program) : program_(std::move(program)) {}

  [[nodiscard]] const Program& program() const { return program_; }
  void set_action(const CLI::App* command, std::function<int()> action) {
    actions_[command] = std::move(action);
  }
  [[nodiscard]] const std::function<int()>* action(const CLI::App* command) const {
    const auto found = actions_.find(command);
    return found == actions_.end() ? nullptr : &found->second;
  }

 private:
  Program program_;
  std::map<const CLI::App*, std::function<int()>> actions_;
};

void add_run(CLI::App& parser, Commands& commands);
void add_check(CLI::App& parser, Commands& commands);
void add_offsets(CLI::App& parser, Commands& commands);
void add_offsets_show(CLI::App& offsets, Commands& commands);
void add_offsets_set(CLI::App& offsets, Commands& commands);
void add_offsets_reset(CLI::App& offsets, Commands& commands);
void add_partitions(CLI::App& parser, Commands& commands);
void add_partitions_peek(CLI::App& partitions, Commands& commands);
void add_skipped(CLI::App& parser, Commands& commands);
void add_audit(CLI::App& parser, Commands& commands);
void add_dlq(CLI::App& parser, Commands& commands);
void add_dlq_show(CLI::App& dlq, Commands& commands);
void add_dlq_parked(CLI::App& dlq, Commands& commands);
void add_dlq_replay(CLI::App& dlq, Commands& commands);
void add_dlq_discard(CLI::App& dlq, Commands& commands);
void add_keys(CLI::App& parser, Commands& commands);
void add_prune(CLI::App& parser, Commands& commands);
void add_dlq_transfer(CLI::App& dlq, Commands& commands);
void add_dlq_erase(CLI::App& dlq, Commands& commands);
void add_status(CLI::App& parser, Commands& commands);
void add_version(CLI::App& parser, Commands& commands);

}  // namespace pawl::cli
