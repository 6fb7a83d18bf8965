#include "postgres/function_calls.hpp"

#include "prelude.hpp"

using pawl::postgres::may_call_functions;

TEST_CASE("what may call a function of the application's is told from what does not") {
  for (const auto* sql :
       {"INSERT INTO ledger (event_id, amount) VALUES ($1, $2::numeric(10, 2))",
        "INSERT INTO app.ledger(id) VALUES ($1) ON CONFLICT (id) DO NOTHING",
        "UPDATE accounts SET balance = coalesce(balance, 0) + $1 WHERE id IN ($2, $3)",
        "INSERT INTO t (a) SELECT lower(x) FROM unnest($1::text[]) WHERE EXISTS (SELECT FROM u)",
        "SELECT pawl.publish($1, $2, $3)", "DELETE FROM t WHERE id = $1", ""}) {
    CAPTURE(sql);
    CHECK_FALSE(may_call_functions(sql));
  }
  for (const auto* sql :
       {"SELECT take_lock($1)", "SELECT app.take_lock ($1)", "SELECT \"Take\"($1)",
        "INSERT INTO t VALUES (f($1))", "SELECT pg_advisory_lock(1)",
        "WITH x AS (SELECT 1) SELECT g(1) FROM x"}) {
    CAPTURE(sql);
    CHECK(may_call_functions(sql));
  }
}
