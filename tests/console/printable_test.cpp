#include "console/printable.hpp"

#include "console/table.hpp"
#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("control characters and what is not UTF-8 are shown, not obeyed") {
  CHECK(printable("plain, \u00fc, \u20ac, \U0001F600") == "plain, \u00fc, \u20ac, \U0001F600");
  CHECK(printable("a\033[2Jb\a\n\t\x7f") == "a\\x1b[2Jb\\x07\\x0a\\x09\\x7f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  // What begins a sequence as ESC [ does: as a character of UTF-8, and as a byte.
  CHECK(printable("\u009b2J") == "\\xc2\\x9b2J");
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");
  // What would show "gpj.exe" as "exe.jpg".
  CHECK(printable("\u202egpj.exe\u202c") == "\\xe2\\x80\\xaegpj.exe\\xe2\\x80\\xac");
  CHECK(printable("\u2068a\u2069\u200f\u061c") ==
        "\\xe2\\x81\\xa8a\\xe2\\x81\\xa9\\xe2\\x80\\x8f\\xd8\\x9c");
  CHECK(printable("\u05e9\u05dc\u05d5\u05dd") == "\u05e9\u05dc\u05d5\u05dd");
  CHECK(printable_lines("a\n\tb\r\n\033") == "a\n\tb\\x0d\n\\x1b");
}

TEST_CASE("a table shows one line a row, whatever its cells hold") {
  Table table({{"KEY"}, {"ERROR"}});
  table.add({"k\033[2J", "first\nsecond"});
  CHECK(table.text() == "KEY       ERROR\nk\\x1b[2J  first\\x0asecond\n");
}

TEST_CASE("the head of a text does not end within a character") {
  CHECK(head("abc", 3) == "abc");
  CHECK(head("abc", 2) == "ab");
  CHECK(head("\u00fc\u00fc", 3) == "\u00fc");
}
