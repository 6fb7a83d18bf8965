// Transactions of pawl's own, on a real server.
#include "postgres/transaction.hpp"

#include <pqxx/pqxx>

#include "postgres/flight.hpp"
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
