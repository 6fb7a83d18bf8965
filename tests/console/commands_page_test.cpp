#include "console/commands_page.hpp"

#include "prelude.hpp"

using pawl::cli::commands_page;
using pawl::cli::CommandTree;

TEST_CASE("the page of the commands has usage, options, and exit status of each") {
  CommandTree show{.name = "show",
                   .description = "Show one <entry>",
                   .footer = "Exit status\n  0  success",
                   .options = {{{"KEY"}, "TEXT", "Key", true, true},
                               {{"-c", "--config"}, "FILE", "a|b", false, true},
                               {{"-h", "--help"}, "", "Show this help", false, false}},
                   .subcommands = {}};
  const CommandTree program{.name = "store",
                            .description = "Store entries",
                            .footer = "",
                            .options = {{{"-h", "--help"}, "", "Show help", false, false}},
                            .subcommands = {show}};
  CHECK_THAT(
      commands_page(program),
      StartsWith("# Commands\n") &&
          EndsWith("\n## `store`\n\nStore entries.\n\n```text\nstore COMMAND [OPTION...]\n```\n"
                   "\n| Option | Meaning |\n|---|---|\n| `-h`, `--help` | Show help |\n"
                   "\n## `store show`\n\nShow one &lt;entry>.\n\n"
                   "```text\nstore show KEY [OPTION...]\n```\n"
                   "\n| Option | Meaning |\n|---|---|\n| `KEY` | Key (required) |\n"
                   "| `-c`, `--config` FILE | a\\|b (required) |\n"
                   "\n```text\nExit status\n  0  success\n```\n"));
}
