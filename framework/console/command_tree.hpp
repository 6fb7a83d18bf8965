#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pawl::cli {

/// A command line as it is declared, for texts that are made of it: completion and the manual page.
struct CommandTree {
  struct Option {
    std::vector<std::string> names;  ///< "-c", "--config"; of one known by its place: "KEY"
    std::string value;               ///< what stands for its value, "FILE"; empty: it takes none
    std::string description;
    bool by_place = false;
    bool required = false;
  };

  std::string name;
  std::string description;
  std::string footer;
  std::vector<Option> options;
  std::vector<CommandTree> subcommands;
};

[[nodiscard]] CommandTree tree_of(const CLI::App& parser);

/// For the shell's start-up file, or its folder of completions. Files are completed where an option
/// takes one.
[[nodiscard]] std::string bash_completion(const CommandTree& program);
[[nodiscard]] std::string zsh_completion(const CommandTree& program);

/// In roff, man(7), section 1. `version`: "pawl 0.1.0".
[[nodiscard]] std::string manual_page(const CommandTree& program, const std::string& version);

}  // namespace pawl::cli
