// Effects that another server commits: foreign tables and dblink on a real second session, and the
// catalog of Citus.
#include <fmt/format.h>

#include <vector>

#include "prelude.hpp"
#include "site.hpp"

namespace {

constexpr const char* kValues =
    "({header:event-id}, {/account}, {/amount}::bigint) RETURNING event_id";

/// A site with foreign tables, on a server that leads back into the same database.
struct TwoServers : Site {
  TwoServers() {
    sql("CREATE EXTENSION postgres_fdw");
    sql("CREATE EXTENSION dblink");
    sql("DO $$BEGIN EXECUTE format('CREATE SERVER east FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        "(host %L, port %L, dbname %L)', split_part(current_setting('unix_socket_directories'), "
        "',', 1), current_setting('port'), current_database()); END$$");
    sql("CREATE USER MAPPING FOR CURRENT_USER SERVER east");
    sql("CREATE TABLE remote (event_id text, account text, amount bigint)");
    sql("CREATE FOREIGN TABLE east_ledger (event_id text, account text, amount bigint) SERVER east "
        "OPTIONS (table_name 'remote')");
    sql("CREATE VIEW east_view AS SELECT * FROM east_ledger");
    sql("CREATE TABLE ruled (event_id text, account text, amount bigint)");
    sql("CREATE RULE copy AS ON INSERT TO ruled DO ALSO INSERT INTO east_ledger VALUES (NEW.*)");
    sql("CREATE TABLE parted (event_id text, account text, amount bigint) PARTITION BY LIST "
        "(account)");
    sql("CREATE TABLE parted_a PARTITION OF parted FOR VALUES IN ('a')");
    sql("CREATE TABLE parted_rest PARTITION OF parted DEFAULT PARTITION BY LIST (account)");
    sql("CREATE FOREIGN TABLE parted_east PARTITION OF parted_rest FOR VALUES IN ('b') SERVER east "
        "OPTIONS (table_name 'remote')");
    sql("CREATE DOMAIN present AS text NOT NULL");
  }
  void handle(const std::string& statement, const std::string& option = "") {
    handler = fmt::format("{}\nsql = ['''{}''']\n", option, statement);
  }
};

struct Case {
  std::string statement;
  std::string table;
  std::string why;
};

}  // namespace

TEST_CASE("a handler must not write to what another server commits") {
  TwoServers site;
  const std::string foreign = "is a foreign table of the server \"east\"";
  const std::vector<Case> cases{
      {fmt::format("INSERT INTO east_ledger VALUES {}", kValues), "public.east_ledger", foreign},
      {"UPDATE east_ledger SET amount = {/amount}::bigint WHERE event_id = {header:event-id}",
       "public.east_ledger", foreign},
      {"DELETE FROM \"east_ledger\" WHERE event_id = {header:event-id}", "public.east_ledger",
       foreign},
      {fmt::format("WITH sent AS (INSERT INTO east_ledger VALUES {}) INSERT INTO ledger SELECT "
                   "event_id, 'a', 1 FROM sent",
                   kValues),
       "public.east_ledger", foreign},
      {fmt::format("INSERT INTO east_view VALUES {}", kValues), "public.east_ledger", foreign},
      {"INSERT INTO ruled VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
       "public.east_ledger", foreign},
      {fmt::format("INSERT INTO parted VALUES {}", kValues), "public.parted",
       "has the partition public.parted_east, a foreign table of the server \"east\""},
      // It cannot be planned with NULL parameters, so its text is what names the table.
      {"INSERT INTO east_ledger VALUES ({header:event-id}::present, 'a', 1)", "public.east_ledger",
       foreign},
  };
  for (const auto& [statement, table, why] : cases) {
    CAPTURE(statement);
    site.handle(statement);
    const auto check = site.run({"check"});
    INFO(check.out << check.err);
    CHECK(check.code == 1);
    CHECK_THAT(check.out, ContainsSubstring(fmt::format(
                              "handler[0].sql[0]: writes to {}, which {}. That server commits "
                              "separately",
                              table, why)) &&
                              ContainsSubstring(fmt::format("not_atomic = [\"{}\"]", table)));
    // Who accepts it does so by its name.
    site.handle(statement, fmt::format("not_atomic = [\"{}\"]", table));
    const auto accepted = site.run({"check"});
    INFO(accepted.out << accepted.err);
    CHECK(accepted.code == 0);
    CHECK_THAT(accepted.out, !ContainsSubstring("commits separately"));
  }
}

TEST_CASE("a batch must not write to what another server commits") {
  TwoServers site;
  site.handle(
      "INSERT INTO east_ledger SELECT * FROM unnest({header:event-id}::text[], {/account}::text[], "
      "{/amount}::bigint[])",
      "batch = true");
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 1);
  CHECK_THAT(check.out, ContainsSubstring("writes to public.east_ledger"));
}

TEST_CASE("a consumer does not start with effects on another server that nothing accepts") {
  TwoServers site;
  site.pay_many(0, "e", 1);
  site.handle(fmt::format("INSERT INTO east_ledger VALUES {}", kValues));
  const auto refused = site.run({"run", "--drain"});
  INFO(refused.out << refused.err);
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, ContainsSubstring("writes to public.east_ledger"));
  const auto tried = site.run({"try", "--topic", site.topic, "--partition", "0", "--offset", "0",
                               "--commit", "--because", "now"});
  INFO(tried.out << tried.err);
  CHECK(tried.code == 1);
  CHECK_THAT(tried.err, ContainsSubstring("writes to public.east_ledger"));
  CHECK(site.sql("SELECT count(*) FROM remote") == "0");
  CHECK(site.sql("SELECT count(*) FROM pawl.idempotency_keys") == "0");

  site.handle(fmt::format("INSERT INTO east_ledger VALUES {}", kValues),
              "not_atomic = [\"public.east_ledger\"]");
  const auto accepted = site.run({"run", "--drain"});
  INFO(accepted.out << accepted.err);
  CHECK(accepted.code == 0);
  CHECK_THAT(accepted.err, ContainsSubstring("at least once through public.east_ledger"));
  CHECK(site.sql("SELECT count(*) FROM remote") == "1");
}

TEST_CASE("a handler may read what another server stores") {
  TwoServers site;
  site.handle(
      "INSERT INTO ledger SELECT {header:event-id}, {/account}, coalesce(sum(e.amount), 0) + "
      "{/amount}::bigint FROM east_ledger e");
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, !ContainsSubstring("commits separately"));
}

TEST_CASE("dblink_exec is refused unless it is accepted, and dblink is a warning") {
  TwoServers site;
  site.handle("SELECT public.DBLINK_EXEC('east', 'DELETE FROM remote')");
  const auto refused = site.run({"check"});
  INFO(refused.out << refused.err);
  CHECK(refused.code == 1);
  CHECK_THAT(refused.out, ContainsSubstring("handler[0].sql[0]: calls dblink_exec") &&
                              ContainsSubstring("not_atomic = [\"dblink_exec\"]"));
  CHECK(site.run({"run", "--drain"}).code == 1);

  site.handle("SELECT public.dblink_exec('east', 'DELETE FROM remote')",
              "not_atomic = [\"dblink_exec\"]");
  CHECK(site.run({"check"}).code == 0);

  site.handle("SELECT * FROM dblink('east', 'SELECT 1') AS t (n int) /* dblink_exec() */");
  const auto read = site.run({"check"});
  INFO(read.out << read.err);
  CHECK(read.code == 0);
  CHECK_THAT(read.out, ContainsSubstring("Handlers        WARN  ") &&
                           ContainsSubstring("calls dblink, which may write on another server"));
}

// Citus is not built here: what pawl asks is its catalog, by name and columns of Citus 12.
TEST_CASE("a handler must not write to a table of Citus") {
  Site site;
  site.sql(
      "CREATE TABLE pg_dist_partition (logicalrelid regclass NOT NULL, partmethod \"char\" NOT "
      "NULL, partkey text, colocationid integer NOT NULL, repmodel \"char\" NOT NULL, "
      "autoconverted boolean NOT NULL)");
  CHECK(site.run({"check"}).code == 0);
  site.sql("INSERT INTO pg_dist_partition VALUES ('accounts', 'h', NULL, 1, 's', false)");
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 1);
  CHECK_THAT(check.out,
             ContainsSubstring(
                 "handler[0].sql[1]: writes to public.accounts, which is a table of Citus") &&
                 !ContainsSubstring("public.ledger"));
  CHECK(site.run({"run", "--drain"}).code == 1);
}

TEST_CASE("an entry of not_atomic that accepts nothing is a warning") {
  Site site;
  site.handler = "not_atomic = [\"public.ledger\"]\n" + site.handler;
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, ContainsSubstring("handler[0]: not_atomic has \"public.ledger\", but"));
}

TEST_CASE("a statement that cannot be planned with NULL is not wrong for that") {
  Site site;
  site.sql("CREATE DOMAIN present AS text NOT NULL");
  site.handler =
      "sql = [\"INSERT INTO ledger VALUES ({header:event-id}::present, {/account}, 1)\"]\n";
  const auto check = site.run({"check"});
  INFO(check.out << check.err);
  CHECK(check.code == 0);
  CHECK_THAT(check.out, ContainsSubstring("handler[0].sql[0]: PostgreSQL accepts the statement but "
                                          "cannot plan it with NULL parameters"));
  // A mistake stays one, also where only the planner finds it.
  site.handler =
      "sql = [\"INSERT INTO ledger VALUES ({header:event-id}, {/account}, 1) ON CONFLICT (account) "
      "DO NOTHING\"]\n";
  CHECK(site.run({"check"}).code == 1);
}
