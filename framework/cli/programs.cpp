#include "cli/programs.hpp"

#include "console/bad_call.hpp"
#include "process/program.hpp"

namespace pawl::cli {

std::vector<NamedProgram> programs_of(const Options& options) {
  std::vector<NamedProgram> found;
  for (const auto& one : {NamedProgram{"alerts.command", "alert command", options.alerts.command},
                          NamedProgram{"postgres.password_command", "password command",
                                       options.postgres.password_command},
                          NamedProgram{"kafka.oauth_token_command", "token command",
                                       options.kafka.oauth_token_command}}) {
    if (!one.command.empty())
      found.push_back(one);
  }
  return found;
}

void require_programs(const Options& options) {
  for (const auto& [option, what, command] : programs_of(options)) {
    if (const auto problem = process::command_problem(option, command); !problem.empty())
      throw BadCall(problem);
  }
}

}  // namespace pawl::cli
