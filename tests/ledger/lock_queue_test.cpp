// Who blocks a session, on a real server.
#include <fmt/format.h>

#include <future>
#include <pqxx/pqxx>

#include "ledger/blocking_sessions.hpp"
#include "postgres/session.hpp"
#include "prelude.hpp"

namespace {

/// Locks the row in a transaction of its own, after all that locked it before.
std::future<void> lock_row(pqxx::connection& connection) {
  return std::async(std::launch::async, [&connection] {
    pqxx::work tx(connection);
    tx.exec("SELECT id FROM entries FOR UPDATE");
    tx.commit();
  });
}

void wait_until_blocked(pqxx::connection& admin, const pqxx::connection& connection) {
  wait_until(
      [&] {
        pqxx::nontransaction tx(admin);
        return tx.exec(fmt::format("SELECT cardinality(pg_blocking_pids({}))",
                                   connection.backendpid()))
                   .one_field()
                   .as<int>() > 0;
      },
      60s, "a session to wait for the row");
}

}  // namespace

// A role without pg_read_all_stats sees neither the state nor the wait of another role's session.
TEST_CASE("the session at the head of a queue is found, whatever the role may see of the queue") {
  const std::string owner = PostgresServer::shared().create_empty_database("queue");
  const std::string role = GENERATE(as<std::string>(), "postgres", "watcher");
  CAPTURE(role);
  auto url = owner;
  url.replace(url.find("postgres@"), 9, role + "@");
  pqxx::connection admin(owner);
  pqxx::nontransaction(admin).exec(
      "DROP ROLE IF EXISTS watcher; CREATE ROLE watcher LOGIN; CREATE TABLE entries AS SELECT 1 AS "
      "id; GRANT SELECT, UPDATE ON entries TO watcher");
  {
    pqxx::connection head(owner);
    pqxx::connection next(owner);
    pqxx::connection last(url);
    std::future<void> next_done;
    std::future<void> last_done;
    pqxx::work tx(head);
    tx.exec("SELECT id FROM entries FOR UPDATE");
    next_done = lock_row(next);
    wait_until_blocked(admin, next);
    last_done = lock_row(last);
    wait_until_blocked(admin, last);

    postgres::SessionSettings settings;
    settings.url = url;
    postgres::Session session(settings);
    // The server shows a wait a moment after it has begun.
    std::vector<ledger::BlockingSession> found;
    wait_until(
        [&] {
          found = ledger::blocking_sessions(session, last.backendpid());
          return !found.empty();
        },
        60s, "the wait to be shown");
    REQUIRE(found.size() == 1);
    CHECK(found.front().pid == head.backendpid());
    CHECK(ledger::still_block(session, found));
    tx.commit();
    next_done.get();
    last_done.get();
    CHECK_FALSE(ledger::still_block(session, found));
  }
  pqxx::nontransaction(admin).exec("DROP OWNED BY watcher; DROP ROLE watcher");
}
