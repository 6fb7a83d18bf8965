#include "dead_letters/dlq.hpp"
#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("the error of a dead letter is shown without the name of its handler") {
  struct Case {
    const char* error;
    const char* shown;
  };
  const Case cases[] = {
      {"handler[2].sql[0] (write-invoice): insert failed: x", "sql[0]: insert failed: x"},
      {"handler[2].sql[0]: insert failed", "sql[0]: insert failed"},
      {"handler[2] (a.b): thrown", "thrown"},
      {"handler[2]: thrown", "thrown"},
      {"handler[2] without an end", "handler[2] without an end"},
      {"handler ship: HTTP status 401", "handler ship: HTTP status 401"},
      {"no row: [1]", "no row: [1]"},
      {"", ""},
  };
  for (const auto& [error, shown] : cases)
    CHECK(error_text(error) == shown);
  CHECK(first_line("one\ntwo") == "one");
}
