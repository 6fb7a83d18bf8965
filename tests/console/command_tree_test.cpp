#include "console/command_tree.hpp"

#include "prelude.hpp"

using pawl::cli::bash_completion;
using pawl::cli::CommandTree;
using pawl::cli::help_text;
using pawl::cli::manual_page;
using pawl::cli::usage_text;
using pawl::cli::zsh_completion;

namespace {

CommandTree books() {
  CommandTree show{.name = "show",
                   .description = "One: of them",
                   .footer = "",
                   .options = {{{"KEY"}, "TEXT", "Which", true, true},
                               {{"-c", "--config"}, "FILE", "It's read", false, true},
                               {{"--json"}, "", "For machines", false, false}},
                   .subcommands = {}};
  CommandTree list{.name = "list",
                   .description = "All",
                   .footer = ".Ends \\ so",
                   .options = {},
                   .subcommands = {show}};
  return {.name = "books",
          .description = "Keeps books",
          .footer = "",
          .options = {{{"--help"}, "", "This", false, false}},
          .subcommands = {list}};
}

}  // namespace

TEST_CASE("the usage of a command has its arguments and its required options") {
  const auto show = books().subcommands.front().subcommands.front();
  CHECK(usage_text(show, "books list show") == "books list show KEY --config FILE");
  CHECK(usage_text(books(), "books") == "books COMMAND");
  auto many = show;
  many.options.front().repeatable = true;
  CHECK(usage_text(many, "x") == "x KEY... --config FILE");
  many.options.front().required = false;
  CHECK(usage_text(many, "x") == "x [KEY...] --config FILE");
}

TEST_CASE("help lists commands by their groups, then options") {
  auto program = books();
  program.footer = "Exit status\n  0  success\n";
  program.subcommands.front().group = "Observe";
  program.subcommands.push_back(program.subcommands.front());
  program.subcommands.back().name = "a-longer-name-than-usual";
  program.subcommands.back().group = "Fix";
  CHECK(help_text(program, "books") ==
        "Keeps books\n"
        "\n"
        "Usage: books COMMAND [OPTIONS]\n"
        "\n"
        "Observe\n"
        "  list         All\n"
        "\n"
        "Fix\n"
        "  a-longer-name-than-usual  All\n"
        "\n"
        "Options\n"
        "      --help            This\n"
        "\n"
        "Exit status\n"
        "  0  success\n");
  const auto show = help_text(books().subcommands.front().subcommands.front(), "books list show");
  CHECK_THAT(show, ContainsSubstring("\nArguments\n  KEY                   Which\n\nOptions\n"
                                     "  -c, --config FILE     It's read\n"
                                     "      --json            For machines\n"));
}

TEST_CASE("bash completes commands and options along the words that were typed") {
  const auto text = bash_completion(books());
  CHECK_THAT(text, ContainsSubstring("complete -F _books books"));
  CHECK_THAT(text, ContainsSubstring("'books list' | 'books list show') path+="));
  CHECK_THAT(text, ContainsSubstring("'books') words='list --help' ;;"));
  CHECK_THAT(text, ContainsSubstring("'books list') words='show' ;;"));
  CHECK_THAT(text, ContainsSubstring("'books list show') words='--config --json' ;;"));
  CHECK_THAT(text, ContainsSubstring("'-c' | '--config')"));
}

TEST_CASE("zsh says what each word means") {
  const auto text = zsh_completion(books());
  CHECK_THAT(text, ContainsSubstring("#compdef books\n"));
  CHECK_THAT(text, ContainsSubstring("items=('show:One\\: of them')"));
  CHECK_THAT(text, ContainsSubstring("'--config:It'\\''s read'"));
}

TEST_CASE("the manual page has every command, and roff finds nothing in its texts") {
  const auto text = manual_page(books(), "pawl 1");
  CHECK_THAT(text, ContainsSubstring(".TH BOOKS 1 \"\" \"pawl 1\"\n"));
  CHECK_THAT(text, ContainsSubstring(".SS books list show\n"));
  CHECK_THAT(text, ContainsSubstring("\\fB\\-c\\fR, \\fB\\-\\-config\\fR \\fIFILE\\fR\n"));
  CHECK_THAT(text, ContainsSubstring("\n\\&.Ends \\e so\n"));
  CHECK_THAT(text, ContainsSubstring("\n.SH ENVIRONMENT\n.TP\n\\fBPAWL_CONFIG\\fR\n"));
  CHECK_THAT(text, ContainsSubstring("\n.SH FILES\n.TP\n\\fI/usr/share/doc/pawl/docs\\fR\n"));
  CHECK_THAT(text, ContainsSubstring("\\fBbooks list show\\fR \\fIKEY\\fR [\\fIOPTION\\fR...]"));
}
