#include "console/table.hpp"

#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("a table aligns characters, not bytes") {
  Table table({{"KEY"}, {"LAG", Table::Align::kRight}, {"OWNER"}});
  table.add({"ü", "1", "a"});
  table.add({"abcd", "1000", "-"});
  CHECK(table.text() ==
        "KEY    LAG  OWNER\n"
        "ü        1  a\n"
        "abcd  1000  -\n");
}

TEST_CASE("the last cell of a row is wrapped below itself if the table is too wide") {
  Table table({{"ID", Table::Align::kRight}, {"ERROR"}});
  table.add({"7", "one two three four five six seven"});
  CHECK(table.text(28) ==
        "ID  ERROR\n"
        " 7  one two three four five\n"
        "    six seven\n");
  CHECK(table.lines().size() == 2);
}
