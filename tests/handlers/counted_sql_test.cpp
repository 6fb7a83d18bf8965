#include "handlers/counted_sql.hpp"
#include "prelude.hpp"

using pawl::handlers::counted_sql;

TEST_CASE("a statement that demands its row count raises where it touches another number") {
  CHECK(counted_sql("UPDATE a SET b = $1", 1, "pawl") ==
        "WITH pawl_rows AS MATERIALIZED (\nUPDATE a SET b = $1\nRETURNING 1) SELECT CASE WHEN"
        " count(*) <> 1 THEN pawl.reject_rows(count(*), 1) END FROM pawl_rows");
  CHECK(counted_sql("/* all */ select 1 -- last", 0, "other") ==
        "WITH pawl_rows AS MATERIALIZED (\n/* all */ select 1 -- last\n) SELECT CASE WHEN"
        " count(*) <> 0 THEN other.reject_rows(count(*), 0) END FROM pawl_rows");
}

TEST_CASE("RETURNING is not said twice, and a string or a name is no clause") {
  const auto* with = GENERATE("INSERT INTO a VALUES (1) RETURNING b", "delete from a returning *");
  CHECK(counted_sql(with, 1, "pawl")->find("RETURNING 1)") == std::string::npos);
  const auto* without = GENERATE("INSERT INTO a VALUES ('RETURNING')",
                                 "UPDATE a SET \"returning\" = $1", "DELETE FROM a -- RETURNING",
                                 "INSERT INTO a VALUES (json_value($1, '$.x' RETURNING bigint))",
                                 "INSERT INTO a SELECT b AS returning, c . returning FROM d");
  CHECK(counted_sql(without, 1, "pawl")->find("\nRETURNING 1)") != std::string::npos);
}

TEST_CASE("what a WITH cannot hold is left as it is") {
  const auto* sql = GENERATE("WITH x AS (SELECT 1) INSERT INTO a SELECT * FROM x",
                             "INSERT INTO a WITH x AS (DELETE FROM b RETURNING 1) SELECT * FROM x",
                             "CALL p($1)", "MERGE INTO a USING b ON true WHEN MATCHED THEN DELETE",
                             "VALUES (1)", "NOTIFY channel", "SET LOCAL work_mem = '1MB'");
  CAPTURE(sql);
  CHECK_FALSE(counted_sql(sql, 1, "pawl").has_value());
}
