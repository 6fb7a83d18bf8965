#include "postgres/array_elements.hpp"

#include <array>

#include "prelude.hpp"

using pawl::postgres::ArrayElements;

TEST_CASE("elements of an array are quoted, numbers and NULL are not") {
  ArrayElements elements;
  CHECK(elements.array() == "{}");
  elements.add_text("plain");
  elements.add_text("");
  elements.add_text("NULL");
  elements.add_null();
  elements.add_integer(-9223372036854775807LL - 1);
  elements.add_text(R"(a"b\c\)");
  elements.add_text("{1,2}\t\n");
  CHECK(elements.array() ==
        "{\"plain\",\"\",\"NULL\",NULL,-9223372036854775808,\"a\\\"b\\\\c\\\\\",\"{1,2}\t\n\"}");
  CHECK(elements.size() == 7);
}

TEST_CASE("bytes are elements in bytea's hex format") {
  ArrayElements elements;
  elements.add_bytes({"a\0\xff\\", 4});
  elements.add_bytes("");
  elements.add_null();
  CHECK(elements.array() == R"({"\\x6100ff5c","\\x",NULL})");
}

TEST_CASE("an array can be made of some of the elements, and the last ones taken off") {
  ArrayElements elements;
  for (const auto* text : {"a", "b,", "c\"", "d"})
    elements.add_text(text);
  CHECK(elements.array_of(std::array<std::uint32_t, 2>{0, 2}) == R"({"a","c\""})");
  CHECK(elements.array_of(std::array<std::uint32_t, 1>{3}) == R"({"d"})");
  CHECK(elements.array_of(std::array<std::uint32_t, 4>{0, 1, 2, 3}) == elements.array());
  CHECK(elements.array_of({}) == "{}");
  elements.truncate(2);
  elements.truncate(5);
  CHECK(elements.array() == R"({"a","b,"})");
  elements.truncate(0);
  elements.add_text("new");
  CHECK(elements.array() == R"({"new"})");
  elements.clear();
  CHECK(elements.size() == 0);
}
