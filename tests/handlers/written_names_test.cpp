#include "handlers/written_names.hpp"

#include <string>
#include <vector>

#include "prelude.hpp"

using pawl::handlers::dblink_calls;
using pawl::handlers::written_names;
using Names = std::vector<std::string>;

TEST_CASE("the targets that a statement's text names") {
  struct Case {
    std::string sql;
    Names names;
  };
  const std::vector<Case> cases{
      {"INSERT INTO t VALUES ($1)", {"t"}},
      {"insert /* into x */ into\n app . \"T t\" AS x (a) VALUES ($1)", {"app.\"T t\""}},
      {"INSERT INTO t VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = 1", {"t"}},
      {"UPDATE ONLY a.t SET b = 1", {"a.t"}},
      {"UPDATE t * SET b = 1", {"t"}},
      {"DELETE FROM t USING u WHERE t.a = u.a", {"t"}},
      {"MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = 1 WHEN NOT MATCHED THEN "
       "INSERT VALUES (1)",
       {"t"}},
      {"WITH x AS (DELETE FROM a RETURNING *), y AS (UPDATE b SET c = 1) INSERT INTO d SELECT * "
       "FROM x",
       {"a", "b", "d"}},
      {"SELECT * FROM t FOR UPDATE", {}},
      {"SELECT * FROM t FOR NO KEY UPDATE OF t", {}},
      {"SELECT 'INSERT INTO t', \"INSERT\" FROM u -- DELETE FROM v", {}},
      {"SELECT * FROM t; UPDATE t SET a = 1; UPDATE t SET a = 2", {"t"}},
      {"TRUNCATE TABLE ONLY a, b.c * , d RESTART IDENTITY", {"a", "b.c", "d"}},
      {"COPY t FROM STDIN", {"t"}},
  };
  for (const auto& [sql, names] : cases) {
    CAPTURE(sql);
    CHECK(written_names(sql) == names);
  }
}

TEST_CASE("the calls of dblink in a statement's text") {
  CHECK(dblink_calls("SELECT dblink_exec ('x', 'y'), ext.DBLINK_EXEC('x')") ==
        Names{"dblink_exec"});
  CHECK(dblink_calls("SELECT * FROM \"dblink\"('x') AS t (a int)") == Names{"dblink"});
  CHECK(dblink_calls("SELECT dblink_send_query('x', 'y')") == Names{"dblink_send_query"});
  CHECK(dblink_calls("SELECT dblink, 'dblink_exec()' FROM dblink_exec -- dblink()").empty());
}
