#include "console/terminal.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

namespace {

const Terminal kPipe;
const Terminal kFull{80, 24, true, true};

}  // namespace

TEST_CASE("colors and symbols need a terminal that shows them") {
  struct Case {
    const char* what;
    OutputFacts facts;
    std::size_t columns;
    bool colors;
    bool symbols;
  };
  const Case cases[] = {
      {"a terminal", {true, 100, 40, "", "xterm", "C.UTF-8"}, 100, true, true},
      {"the other spelling of UTF-8", {true, 100, 40, "", "xterm", "en_US.utf8"}, 100, true, true},
      {"NO_COLOR", {true, 100, 40, "1", "xterm", "C.UTF-8"}, 100, false, true},
      {"a terminal without colors", {true, 100, 40, "", "dumb", "C.UTF-8"}, 100, false, true},
      {"another encoding", {true, 100, 40, "", "xterm", "C"}, 100, true, false},
      {"no locale", {true, 0, 0, "", "xterm", ""}, 0, true, false},
      {"a pipe", {false, 0, 0, "", "xterm", "C.UTF-8"}, 0, false, false},
  };
  for (const auto& [what, facts, columns, colors, symbols] : cases) {
    INFO(what);
    const auto terminal = terminal_of(facts);
    CHECK(terminal.columns == columns);
    CHECK(terminal.colors == colors);
    CHECK(terminal.symbols == symbols);
  }
}

TEST_CASE("a pipe gets neither the color nor the symbol, but the same words") {
  CHECK(painted(kFull, Color::kRed, "halted") == "\033[31mhalted\033[0m");
  CHECK(painted(kPipe, Color::kRed, "halted") == "halted");
  CHECK(std::string(symbol(kFull, Symbol::kBad)) + "halted" == "✖ halted");
  CHECK(std::string(symbol(kPipe, Symbol::kBad)) + "halted" == "halted");
  CHECK(std::string(symbol(kPipe, Symbol::kNext)) + "pawl check" == "> pawl check");
  CHECK(std::string(symbol(kPipe, Symbol::kMore)) + "2 more" == "... 2 more");
}

TEST_CASE("a character takes one column, and a color none") {
  CHECK(width_of("abc") == 3);
  CHECK(width_of("→ ü€") == 4);
  CHECK(width_of(painted(kFull, Color::kBold, "abc")) == 3);
  CHECK(width_of("") == 0);
  CHECK(padded("ü", 3) == "ü  ");
  CHECK(padded("abcd", 3) == "abcd");
}

TEST_CASE("a text is wrapped at blanks, below its first column") {
  struct Case {
    const char* what;
    const char* text;
    std::size_t columns;
    std::size_t indent;
    const char* wrapped;
  };
  const Case cases[] = {
      {"it fits", "one two", 30, 0, "one two"},
      {"it fits exactly", "one two three four five six", 27, 0, "one two three four five six"},
      {"one column less", "one two three four five six", 26, 0, "one two three four five\nsix"},
      {"below its first column", "one two three four five six", 30, 4,
       "one two three four five\n    six"},
      {"no limit", "one two three four five six", 0, 4, "one two three four five six"},
      {"lines of its own", "one\ntwo\n\nthree", 0, 2, "one\n  two\n\n  three"},
      {"a word that is too long", "a0123456789012345678901234567890 b", 24, 0,
       "a0123456789012345678901234567890\nb"},
      {"characters, not bytes", "üüü üüü üüü üüü üüü üüü", 23, 0, "üüü üüü üüü üüü üüü üüü"},
      {"blanks at the start stay", "  one two three four five six", 26, 0,
       "  one two three four five\nsix"},
      {"too narrow for words", "one two three four five", 5, 4, "one two three four\n    five"},
      {"nothing", "", 10, 2, ""},
  };
  for (const auto& [what, text, columns, indent, expected] : cases) {
    INFO(what);
    CHECK(wrapped(text, columns, indent) == expected);
  }
}
