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

TEST_CASE("the error of a group of dead letters is one line, a violated constraint its name") {
  struct Case {
    const char* sqlstate;
    const char* error;
    const char* shown;
  };
  const Case cases[] = {
      {"", "HTTP status 401\nand more", "HTTP status 401"},
      {"22P02", "handler[0].sql[0] (pay): invalid input syntax for type numeric: \"twelve\"",
       "22P02 sql[0]: invalid input syntax for type numeric: \"twelve\""},
      {"23503", "insert or update on table \"a\" violates foreign key constraint \"a_b_fkey\"",
       "23503 a_b_fkey"},
      {"23505", "duplicate key value violates unique constraint \"a_pkey\"", "23505 a_pkey"},
      {"23502", "null value in column \"b\" of relation \"a\" violates not-null constraint",
       "23502 null value in column \"b\" of relation \"a\" violates not-null constraint"},
      {"23514", "new row violates check constraint \"cut",
       "23514 new row violates check constraint \"cut"},
      {"42704", "there is no constraint \"a_pkey\"", "42704 there is no constraint \"a_pkey\""},
  };
  for (const auto& [sqlstate, error, shown] : cases)
    CHECK(short_error(sqlstate, error) == shown);
}
