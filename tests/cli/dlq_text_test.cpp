#include "dead_letters/dlq.hpp"
#include "prelude.hpp"

using namespace pawl::cli;

TEST_CASE("the error of a group of dead letters is one line, a violated constraint its name") {
  struct Case {
    const char* sqlstate;
    const char* statement;
    const char* error;
    const char* shown;
  };
  const Case cases[] = {
      {"", "", "HTTP status 401\nand more", "HTTP status 401"},
      {"", "sql[0]", "the statement affected 0 rows", "sql[0]: the statement affected 0 rows"},
      {"22P02", "sql[0]", "invalid input syntax for type numeric: \"twelve\"",
       "22P02 sql[0]: invalid input syntax for type numeric: \"twelve\""},
      {"23503", "sql[0]",
       "insert or update on table \"a\" violates foreign key constraint \"a_b_fkey\"",
       "23503 a_b_fkey"},
      {"23505", "", "duplicate key value violates unique constraint \"a_pkey\"", "23505 a_pkey"},
      {"23502", "", "null value in column \"b\" of relation \"a\" violates not-null constraint",
       "23502 null value in column \"b\" of relation \"a\" violates not-null constraint"},
      {"23514", "", "new row violates check constraint \"cut",
       "23514 new row violates check constraint \"cut"},
      {"42704", "", "there is no constraint \"a_pkey\"", "42704 there is no constraint \"a_pkey\""},
  };
  for (const auto& [sqlstate, statement, error, shown] : cases)
    CHECK(short_error(sqlstate, statement, error) == shown);
  CHECK(first_line("one\ntwo") == "one");
}
