#include "console/command_tree.hpp"

#include "prelude.hpp"

using pawl::cli::bash_completion;
using pawl::cli::CommandTree;
using pawl::cli::manual_page;
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
  CHECK_THAT(text, ContainsSubstring("\n.SH FILES\n.TP\n\\fI/usr/share/doc/pawl/docs\\fR\n"));
  CHECK_THAT(text, ContainsSubstring("\\fBbooks list show\\fR \\fIKEY\\fR [\\fIOPTION\\fR...]"));
}
