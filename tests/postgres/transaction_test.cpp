// Transactions of pawl's own, on a real server.
#include "postgres/transaction.hpp"

#include <pqxx/pqxx>

#include "postgres/flight.hpp"
#include "postgres/frame.hpp"
#include "prelude.hpp"

using namespace pawl::postgres;

namespace {

std::string value(pqxx::connection& connection, const std::string& sql) {
  pqxx::nontransaction tx(connection);
  return tx.exec(sql).one_field().view().data();
}

}  // namespace

TEST_CASE("whoever committed without waiting for the disk, it is there after flush_commits") {
  const auto database = PostgresServer::shared().create_empty_database("flush");
  pqxx::connection admin(database);
  value(admin, "SELECT set_config('synchronous_commit', 'off', false)");
  // Any role may do so.
  pqxx::nontransaction(admin).exec("CREATE ROLE flusher LOGIN");
  SessionSettings settings;
  settings.url = database;
  settings.url.replace(settings.url.find("postgres@"), 9, "flusher@");
  settings.synchronous_commit = "off";
  Session session(settings);
  pqxx::nontransaction(admin).exec("CREATE TABLE t AS SELECT generate_series(1, 1000)");
  const auto written = value(admin, "SELECT pg_current_wal_insert_lsn()");
  flush_commits(session);
  CHECK(value(admin, "SELECT pg_current_wal_flush_lsn() >= '" + written + "'") == "t");
}

TEST_CASE("a session knows whether a statement that publishes was sent") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_empty_database("published");
  Session session(settings);
  CHECK_FALSE(session.take_published());
  const auto run = [&](const std::string& sql) {
    Parameters none;
    Flight flight(session);
    flight.add(*session.by_text(sql), none);
    flight.run_each();
  };
  run("SELECT 1");
  CHECK_FALSE(session.take_published());
  // Also where it fails: then somebody looks in vain.
  run("SELECT pawl.publish('t', 'k', 'v')");
  CHECK(session.take_published());
  CHECK_FALSE(session.take_published());
}

// Fails where BEGIN leaves the isolation to the session, whose default is the application's to set:
// what a transaction compares under a lock would be of a snapshot from before that lock.
TEST_CASE("a transaction has the isolation that it needs, whatever the session's default is") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_empty_database("isolation");
  Session session(settings);
  pqxx::nontransaction(session.connection())
      .exec("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE");
  static const Statement show{"", "SELECT current_setting('transaction_isolation')"};
  {
    Frame frame(session, {});
    Request first{&show};
    CHECK(std::string(PQgetvalue(frame.begin(first).get(), 0, 0)) == "read committed");
  }
  const auto results = run_transaction(session, {{&show, {}}});
  CHECK(std::string(PQgetvalue(results.front().get(), 0, 0)) == "read committed");
}

TEST_CASE("a session knows its settings from those that were left in it, and puts them back") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_empty_database("baseline");
  Session session(settings);
  const auto run = [&](const std::string& sql) {
    pqxx::nontransaction(session.connection()).exec(sql);
  };
  run("CREATE ROLE bob; SET search_path = a, b");
  session.take_baseline();
  CHECK(session.is_as_it_began());
  for (const auto* change :
       {"SET search_path = c", "SET ROLE bob", "SET SESSION AUTHORIZATION bob",
        "SET lock_timeout = 1", "SET statement_timeout = 1000", "SET TimeZone = 'Asia/Tokyo'",
        "SET session_replication_role = replica"}) {
    CAPTURE(change);
    run(change);
    CHECK_FALSE(session.is_as_it_began());
    CHECK(session.restore());
    CHECK(value(session.connection(), "SELECT current_setting('search_path')") == "a, b");
  }
  // Its own change is none.
  session.require_statement_timeout(std::chrono::milliseconds(12345));
  CHECK(session.is_as_it_began());
  run("SET search_path = c");
  session.require_statement_timeout(std::chrono::milliseconds(23456));
  CHECK_FALSE(session.is_as_it_began());
  CHECK(session.restore());
  CHECK(value(session.connection(), "SELECT current_setting('statement_timeout')") == "23456ms");
}
