#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "console/command.hpp"
#include "pawl/handler.hpp"

namespace pawl::cli {

/// The process exit codes of every command; docs/runbook.md and --help list them.
/// `run` adds those of pawl::RunResult, and 128 + signal number when a second signal ends it.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,         ///< the reason is on stderr
  kBadCall = 2,        ///< the command line or the configuration is wrong; nothing was changed
  kNeedsSomebody = 3,  ///< `status --exit-code`: it could look, and something needs a person
};

/// The program that the commands belong to: its name on the command line, its handlers, and how it
/// was begun.
struct Program {
  std::string name;
  const Registry& registry;
  std::string path;                    ///< of its file
  std::vector<std::string> arguments;  ///< as it got them, argv[0] included
};

/// The subcommands being set up. Each add_...() hangs its subcommand into a parser and stores what
/// to do when the user chose it; the action returns the exit code and may throw.
class Commands {
 public:
  explicit Commands(Program program) : program_(std::move(program)) {}

  [[nodiscard]] const Program& program() const { return program_; }
  void set_action(const Command* command, std::function<int()> action) {
    actions_[command->parser()] = std::move(action);
  }
  [[nodiscard]] const std::function<int()>* action(const CLI::App* parser) const {
    const auto found = actions_.find(parser);
    return found == actions_.end() ? nullptr : &found->second;
  }

 private:
  Program program_;
  std::map<const CLI::App*, std::function<int()>> actions_;
};

}  // namespace pawl::cli
