#include "ledger/blocking_sessions.hpp"

#include "prelude.hpp"

using pawl::ledger::BlockingSession;

TEST_CASE("who holds a lock is named with all that PostgreSQL shows") {
  CHECK(pawl::ledger::text_of({}).empty());
  CHECK(
      pawl::ledger::text_of({{42, "app", "psql", "idle in transaction", "2026-01-31T00:00:00Z"}}) ==
      "session 42 (user app, application \"psql\", idle in transaction, its transaction open "
      "since 2026-01-31T00:00:00Z) holds the lock");
  BlockingSession session{42, "", "psql", "idle in transaction", ""};
  session.command = "UPDATE";
  CHECK(pawl::ledger::text_of({session}) ==
        "session 42 (application \"psql\", idle in transaction, last statement UPDATE) holds the "
        "lock");
  session.state = "active";
  CHECK(pawl::ledger::text_of({session}) ==
        "session 42 (application \"psql\", active, statement UPDATE) holds the lock");
  CHECK(pawl::ledger::termination_sql(42) == "SELECT pg_terminate_backend(42)");
  CHECK(pawl::ledger::text_of({{42, "", "", "", ""}, {0, "", "", "", ""}}) ==
        "session 42 and a prepared transaction (pg_prepared_xacts) hold the lock");
}
