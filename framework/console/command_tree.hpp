#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pawl::cli {

/// The commands of a program as they are declared. Help, completion, and the manual page are made
/// of it.
struct CommandTree {
  struct Option {
    std::vector<std::string> names;  ///< "-c", "--config"; of an argument: "KEY"
    std::string value;               ///< the placeholder of its value, "FILE"; empty: it takes none
    std::string description;         ///< with the default
    bool by_place = false;           ///< an argument: it is known by its place
    bool required = false;
    bool repeatable = false;  ///< an argument of which there may be more
  };

  std::string name;
  std::string description;
  std::string footer;
  std::vector<Option> options;
  std::vector<CommandTree> subcommands;
  std::string group = {};  ///< the heading in the list of commands; empty: "Commands"
};

[[nodiscard]] CommandTree tree_of(const CLI::App& parser);

/// How the command is called, without what may be omitted: "pawl dlq show ID --config FILE".
/// `path`: its words, "pawl dlq show".
[[nodiscard]] std::string usage_text(const CommandTree& command, const std::string& path);

/// The page that --help prints.
[[nodiscard]] std::string help_text(const CommandTree& command, const std::string& path);

/// For the shell's start-up file, or its folder of completions. Files are completed after an
/// option that takes one.
[[nodiscard]] std::string bash_completion(const CommandTree& program);
[[nodiscard]] std::string zsh_completion(const CommandTree& program);

/// In roff, man(7), section 1. `version`: "pawl 0.1.0".
[[nodiscard]] std::string manual_page(const CommandTree& program, const std::string& version);

}  // namespace pawl::cli
