#include "handlers/response_sql.hpp"
#include "handlers/sql_shape.hpp"
#include "prelude.hpp"

using pawl::handlers::batch_response_sql;
using pawl::handlers::response_problem;
using pawl::handlers::response_sql;
using pawl::handlers::shape_of;

TEST_CASE(
    "a statement whose answer is the response stores it, and raises for what it cannot store") {
  CHECK(
      response_sql("SELECT 1 -- one", {10, std::nullopt, "other"}) ==
      "WITH pawl_response AS MATERIALIZED (\nSELECT 1 -- one\n) SELECT other.store_response("
      "(SELECT count(*) FROM pawl_response), NULL, CASE WHEN pg_typeof(one.value) ="
      " 'bytea'::regtype THEN one.value::text::bytea ELSE convert_to(one.value::text, 'UTF8') END,"
      " 10) FROM (SELECT (SELECT * FROM pawl_response LIMIT 1) AS value) one");
  CHECK_THAT(response_sql("SELECT 1", {10, 1, "pawl"}),
             ContainsSubstring("FROM pawl_response), 1, CASE"));
  CHECK_THAT(batch_response_sql("SELECT $1, $2", {10, std::nullopt, "pawl"}, 2),
             ContainsSubstring("pawl.store_responses(10, $3::integer, $4::text[],"));
}

// What changes rows must stand at the top of the statement, so a WITH at its beginning takes one
// more query instead of becoming part of one.
TEST_CASE("the queries of a WITH stay at the top") {
  struct Case {
    const char* sql;
    const char* main;
  };
  const auto [sql, main] = GENERATE(
      Case{"WITH a AS (DELETE FROM b RETURNING c) SELECT c FROM a", "SELECT c FROM a"},
      Case{"with recursive a (n, m) AS NOT MATERIALIZED (SELECT 1), insert AS (SELECT 2)\nUPDATE b"
           " SET c = 1 RETURNING d",
           "UPDATE b SET c = 1 RETURNING d"},
      Case{"WITH a AS (SELECT ')' || \"(\" FROM x) -- select\n(SELECT 1)", "(SELECT 1)"},
      Case{"WITH a (x) AS (SELECT 1) SEARCH DEPTH FIRST BY x SET y VALUES (1)", "VALUES (1)"},
      Case{"/* with */ SELECT 1", "SELECT 1"});
  CAPTURE(sql);
  const std::string text(sql);
  const auto own = text.substr(shape_of(text).main);
  CHECK(own == (std::string(main).starts_with("UPDATE") ? "UPDATE b SET c = 1 RETURNING d" : main));
  const auto storing = response_sql(text, {10, std::nullopt, "pawl"});
  CHECK_THAT(storing, ContainsSubstring("pawl_response AS MATERIALIZED (\n" + own) ||
                          ContainsSubstring("pawl_response AS MATERIALIZED (\n" + text));
  CHECK((storing.find("WITH") == 0 || storing.find("with") == 0));
}

TEST_CASE("only what returns something can give a response") {
  const auto* can = GENERATE("SELECT 1", "TABLE a", "VALUES (1)", "(SELECT 1)",
                             "INSERT INTO a VALUES (1) RETURNING b",
                             "WITH a AS (SELECT 1) DELETE FROM b RETURNING c");
  CHECK(response_problem(can) == std::nullopt);
  const auto* cannot = GENERATE("UPDATE a SET b = 1", "CALL p()", "DO $$ $$",
                                "WITH a AS (DELETE FROM b RETURNING c) INSERT INTO d TABLE a",
                                "INSERT INTO a VALUES ('RETURNING')");
  CAPTURE(cannot);
  CHECK(response_problem(cannot) != std::nullopt);
}
