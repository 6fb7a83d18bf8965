#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "console/command.hpp"
#include "pawl/handler.hpp"

namespace pawl::cli {

/// The exit codes of every command. `run` adds those of pawl::RunResult, and 128 + signal number
/// if a second signal stops it; `migrate up` adds its own.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,         ///< the reason is on stderr
  kBadCall = 2,        ///< usage or configuration error; nothing was changed
  kNeedsSomebody = 3,  ///< audit; status commands with --exit-code
};

inline const std::vector<ExitStatus> kUsualExitStatus{
    {"0", "success"},
    {"1", "failure; the reason is on stderr"},
    {"2", "usage or configuration error; nothing was changed"}};

/// The program that has the commands: its name on the command line, its handlers, and how it was
/// started.
struct Program {
  std::string name;
  const Registry& registry;
  std::string path;                    ///< of its file
  std::vector<std::string> arguments;  ///< as it got them, argv[0] included
};

/// The commands being set up. Each add_...() adds its command to a parser and stores the action of
/// the command; the action returns the exit code and may throw.
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
