#include "console/unknown_words.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

namespace {

CommandTree command() {
  CommandTree run{.name = "run", .description = "", .footer = "", .options = {}, .subcommands = {}};
  auto offsets = run;
  offsets.name = "offsets";
  return {.name = "pawl",
          .description = "",
          .footer = "",
          .options = {{{"-c", "--config"}, "FILE", "", false, true},
                      {{"--set"}, "NAME=VALUE", "", false, false},
                      {{"confi"}, "TEXT", "", true, false}},
          .subcommands = {run, offsets}};
}

}  // namespace

TEST_CASE("the first unknown word is reported, with the name that it resembles") {
  struct Row {
    std::vector<std::string> words;
    std::string text;
  };
  const auto row = GENERATE(values<Row>({
      {{}, ""},
      {{"--"}, ""},
      {{"rum", "--config", "F"}, "unknown command rum. Did you mean run?"},
      {{"rnu"}, "unknown command rnu. Did you mean run?"},
      {{"--", "offstes"}, "unknown command offstes. Did you mean offsets?"},
      {{"up"}, "unknown command up"},
      {{"--confg", "x"}, "unknown option --confg. Did you mean --config?"},
      {{"--confg=x"}, "unknown option --confg. Did you mean --config?"},
      {{"--nonsense"}, "unknown option --nonsense"},
      {{"config"}, "unknown command config"},
  }));
  CHECK(unknown_words_text(command(), row.words) == row.text);
}

TEST_CASE("a word too many for a command without subcommands is an unexpected argument") {
  CHECK(unknown_words_text(command().subcommands.front(), {"now"}) == "unexpected argument now");
}

TEST_CASE("letters that are swapped are one error of typing") {
  CHECK(typing_errors("run", "run") == 0);
  CHECK(typing_errors("", "run") == 3);
  CHECK(typing_errors("rnu", "run") == 1);
  CHECK(typing_errors("sohw", "show") == 1);
  CHECK(typing_errors("--confg", "--config") == 1);
  CHECK(typing_errors("check", "skip") == 5);
}
