#include <fstream>
#include <pqxx/pqxx>

#include "prelude.hpp"

namespace {

template <typename T>
T query(const std::string& url, const std::string& sql) {
  pqxx::connection connection{url};
  pqxx::nontransaction statement{connection};
  return statement.query_value<T>(sql);
}

void execute(const std::string& url, const std::string& sql) {
  pqxx::connection connection{url};
  pqxx::nontransaction statement{connection};
  statement.exec(sql);
}

}  // namespace

TEST_CASE("a created database has pawl's schema and the application's") {
  const TempDir folder;
  std::ofstream{folder.path() / "0001_ledger.sql"} << "CREATE TABLE ledger (id bigint);\n";
  const auto url = PostgresServer::shared().create_database("books", {{"payments", folder.path()}});
  CHECK(query<int>(url, "SELECT count(*) FROM pawl.processed_kafka_offsets") == 0);
  CHECK(query<int>(url, "SELECT count(*) FROM ledger") == 0);
  CHECK(query<std::string>(
            url, "SELECT string_agg(DISTINCT set_name, ' ') FROM pawl.schema_migrations") ==
        "pawl payments");
  CHECK(PostgresServer::shared().create_database("books") != url);
}

TEST_CASE("an empty database has no schema of ours") {
  const auto url = PostgresServer::shared().create_empty_database();
  CHECK(query<bool>(url, "SELECT to_regnamespace('pawl') IS NULL"));
}

TEST_CASE("a server is stopped, crashed and started again under the same URL with its data") {
  PostgresServer server{{.settings = {"work_mem=5MB"}}};
  const auto url = server.url();
  CHECK(query<std::string>(url, "SHOW work_mem") == "5MB");
  execute(url, "CREATE TABLE kept (n integer); INSERT INTO kept VALUES (1)");

  server.stop();
  CHECK_THROWS_AS(pqxx::connection{url}, pqxx::broken_connection);
  server.stop();
  server.start();
  CHECK(query<int>(url, "SELECT n FROM kept") == 1);

  execute(url, "INSERT INTO kept VALUES (2)");
  pqxx::connection open{url};
  server.restart(StopMode::kImmediate);
  CHECK(query<int>(url, "SELECT count(*) FROM kept") == 2);
  CHECK(query<std::string>(url, "SHOW work_mem") == "5MB");
  pqxx::nontransaction lost{open};
  CHECK_THROWS_AS(lost.exec("SELECT 1"), pqxx::broken_connection);
}

TEST_CASE("a restored copy brings the database back behind") {
  PostgresServer server;
  CHECK_THROWS_AS(server.restore_copy(), std::logic_error);
  const auto url = server.create_empty_database();
  execute(url, "CREATE TABLE applied (n integer); INSERT INTO applied VALUES (1)");
  server.save_copy();
  execute(url, "INSERT INTO applied VALUES (2)");
  server.restore_copy();
  CHECK(query<int>(url, "SELECT max(n) FROM applied") == 1);
  execute(url, "INSERT INTO applied VALUES (3)");
  server.restore_copy();
  CHECK(query<int>(url, "SELECT max(n) FROM applied") == 1);
}
