#include "text/bounded.hpp"

#include "prelude.hpp"

using pawl::texts::bounded;

TEST_CASE("a text keeps its first characters, and reports how many bytes are omitted") {
  struct Row {
    std::string text;
    std::size_t most;
    std::string expected;
  };
  const Row rows[] = {
      {"", 3, ""},
      {"abc", 3, "abc"},
      {"abcd", 3, "abc... (1 byte omitted)"},
      {"abc", 0, "... (3 bytes omitted)"},
      // Characters are counted, and none is cut.
      {"\u00fc\u00fc\u00fc", 3, "\u00fc\u00fc\u00fc"},
      {"\u00fc\u20ac\U0001F600!", 3, "\u00fc\u20ac\U0001F600... (1 byte omitted)"},
      {"a\U0001F600", 1, "a... (4 bytes omitted)"},
      // Text that is not UTF-8 has a limit as well.
      {std::string(100, '\x80'), 2, std::string(8, '\x80') + "... (92 bytes omitted)"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text, row.most);
    CHECK(bounded(row.text, row.most) == row.expected);
  }
}
