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

TEST_CASE("unknown words are told in their order, with what the first one may mean") {
  struct Row {
    std::vector<std::string> words;
    std::string text;
  };
  const auto row = GENERATE(values<Row>({
      {{}, ""},
      {{"rum", "--config", "F"}, "not expected: rum --config F; did you mean run?"},
      {{"rnu"}, "not expected: rnu; did you mean run?"},
      {{"offstes"}, "not expected: offstes; did you mean offsets?"},
      {{"up"}, "not expected: up"},
      {{"--confg", "x"}, "not expected: --confg x; did you mean --config?"},
      {{"--confg=x"}, "not expected: --confg=x; did you mean --config?"},
      {{"--nonsense"}, "not expected: --nonsense"},
      {{"config"}, "not expected: config"},
  }));
  CHECK(unknown_words_text(command(), row.words) == row.text);
}

TEST_CASE("letters that are swapped are one error of typing") {
  CHECK(typing_errors("run", "run") == 0);
  CHECK(typing_errors("", "run") == 3);
  CHECK(typing_errors("rnu", "run") == 1);
  CHECK(typing_errors("sohw", "show") == 1);
  CHECK(typing_errors("--confg", "--config") == 1);
  CHECK(typing_errors("check", "skip") == 5);
}
