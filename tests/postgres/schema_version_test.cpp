// What counts as a change of the schema, on a real server, and who has to look.
#include "postgres/schema_version.hpp"

#include <pqxx/pqxx>

#include "postgres/session.hpp"
#include "prelude.hpp"

using namespace pawl::postgres;
using Reading = SchemaVersion::Reading;

namespace {

struct Change {
  std::string what;
  std::vector<std::string> statements;
};

/// A database with something of each kind in it, and the version that a process has of it.
class Catalog {
 public:
  Catalog() : url_(PostgresServer::shared().create_database()), session_(settings()) {
    run("CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN amount AS numeric;"
        "CREATE EXTENSION hstore; CREATE SCHEMA other;"
        "CREATE TABLE t (id text PRIMARY KEY, n int, m mood, a amount);"
        "CREATE TABLE next_t (id text PRIMARY KEY, n bigint);"
        "CREATE MATERIALIZED VIEW sums AS SELECT count(*) FROM t;"
        "CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT x';"
        "INSERT INTO t SELECT i::text, i FROM generate_series(1, 200) i");
    version_.confirm(session_);
  }

  void run(const std::string& sql) {
    pqxx::connection connection(url_);
    pqxx::nontransaction(connection).exec(sql);
  }
  [[nodiscard]] bool changed() {
    const auto before = version_.current();
    version_.confirm(session_);
    return version_.current() != before;
  }

 private:
  [[nodiscard]] SessionSettings settings() const {
    SessionSettings result;
    result.url = url_;
    return result;
  }

  std::string url_;
  SchemaVersion version_;
  Session session_;
};

}  // namespace

TEST_CASE("whatever changes what a statement means is another version of the schema") {
  const auto change = GENERATE(from_range(std::vector<Change>{
      {"a column's type", {"ALTER TABLE t ALTER n TYPE bigint"}},
      {"a column more", {"ALTER TABLE t ADD v text"}},
      {"a column less", {"ALTER TABLE t DROP n"}},
      {"a column's name", {"ALTER TABLE t RENAME n TO o"}},
      {"an enum that is replaced",
       {"CREATE TYPE new_mood AS ENUM ('good', 'so-so')",
        "ALTER TABLE t ALTER m TYPE new_mood USING m::text::new_mood", "DROP TYPE mood",
        "ALTER TYPE new_mood RENAME TO mood"}},
      {"an extension that is made anew", {"DROP EXTENSION hstore", "CREATE EXTENSION hstore"}},
      {"tables that are swapped",
       {"ALTER TABLE t RENAME TO old_t", "ALTER TABLE next_t RENAME TO t"}},
      {"a table in another schema", {"ALTER TABLE t SET SCHEMA other"}},
      {"a table that is made anew", {"DROP TABLE next_t", "CREATE TABLE next_t (id text, n text)"}},
      {"a function that is replaced",
       {"CREATE OR REPLACE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT x + 1'"}},
      {"a function that is overloaded",
       {"CREATE FUNCTION f(x bigint) RETURNS bigint LANGUAGE sql AS 'SELECT x'"}},
      {"a domain's constraint", {"ALTER DOMAIN amount ADD CHECK (VALUE > 0)"}},
      {"a domain's default", {"ALTER DOMAIN amount SET DEFAULT 1"}},
      {"a cast", {"CREATE CAST (text AS mood) WITH INOUT AS ASSIGNMENT"}},
      {"an operator",
       {"CREATE FUNCTION same(mood, text) RETURNS bool LANGUAGE sql AS 'SELECT $1::text = $2'",
        "CREATE OPERATOR === (LEFTARG = mood, RIGHTARG = text, FUNCTION = same)"}},
      {"a schema's name", {"ALTER SCHEMA other RENAME TO another"}},
      {"a setting of the database's",
       {"DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other', "
        "current_database()); END$$"}},
      {"a setting of a role's in this database",
       {"DO $$BEGIN EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = other', "
        "current_user, current_database()); END$$"}},
  }));
  CAPTURE(change.what);
  Catalog catalog;
  for (const auto& statement : change.statements) {
    catalog.run(statement);
    CHECK(catalog.changed());
  }
}

TEST_CASE("what applications and maintenance do all the time is no change of the schema") {
  const std::string statement = GENERATE(
      "INSERT INTO t SELECT i::text, i FROM generate_series(201, 400) i", "UPDATE t SET n = n + 1",
      "DELETE FROM t", "ANALYZE", "VACUUM (FREEZE, ANALYZE)", "VACUUM pg_attribute",
      "VACUUM FULL t", "VACUUM FULL pg_attribute", "CLUSTER t USING t_pkey", "TRUNCATE t",
      "REINDEX TABLE t", "REINDEX TABLE CONCURRENTLY t", "CREATE INDEX CONCURRENTLY ON t (n)",
      "REFRESH MATERIALIZED VIEW sums",
      "CREATE TEMPORARY TABLE temporary_t (id text PRIMARY KEY, n int)",
      "CREATE TYPE pg_temp.temporary_type AS ENUM ('a')",
      "CREATE FUNCTION pg_temp.g(x int) RETURNS int LANGUAGE sql AS 'SELECT x'",
      "SET search_path = other", "GRANT SELECT ON t TO PUBLIC");
  CAPTURE(statement);
  Catalog catalog;
  catalog.run(statement);
  CHECK_FALSE(catalog.changed());
}

TEST_CASE("temporary objects of a session that goes on are no change of the schema") {
  const auto url = PostgresServer::shared().create_database();
  SessionSettings settings;
  settings.url = url;
  Session session(settings);
  SchemaVersion version;
  version.confirm(session);
  const auto before = version.current();
  pqxx::connection application(url);
  pqxx::nontransaction work(application);
  work.exec("CREATE TEMPORARY TABLE t (id text PRIMARY KEY, long text)");
  work.exec("CREATE TYPE pg_temp.e AS ENUM ('a')");
  work.exec("CREATE FUNCTION pg_temp.g(x int) RETURNS int LANGUAGE sql AS 'SELECT x'");
  version.confirm(session);
  CHECK(version.current() == before);
}

TEST_CASE("nothing begins on a session that was opened under an older version") {
  const auto url = PostgresServer::shared().create_database();
  pqxx::connection application(url);
  SessionSettings settings;
  settings.url = url;
  settings.schema = std::make_shared<SchemaVersion>(0ms);
  Session first(settings);
  // Nobody knew a version when it was opened.
  CHECK_FALSE(settings.schema->may_begin(first));
  settings.schema->confirm(first);
  Session second(settings);
  CHECK(settings.schema->may_begin(second));
  pqxx::nontransaction(application).exec("CREATE TABLE t (id text)");
  CHECK_FALSE(settings.schema->may_begin(second));
  CHECK_FALSE(settings.schema->may_begin(second));
  Session third(settings);
  CHECK(settings.schema->may_begin(third));
}

TEST_CASE("while the version is young nobody reads the catalog") {
  const auto url = PostgresServer::shared().create_database();
  pqxx::connection application(url);
  SessionSettings settings;
  settings.url = url;
  settings.schema = std::make_shared<SchemaVersion>(1h);
  Session opener(settings);
  settings.schema->confirm(opener);
  Session session(settings);
  pqxx::nontransaction(application).exec("CREATE TABLE t (id text)");
  CHECK(settings.schema->may_begin(session));
}

TEST_CASE("who begins looks at the schema when the last look is old, beyond a bound everyone") {
  constexpr auto kInterval = 2000ms;
  CHECK(SchemaVersion::reading_due(std::nullopt, kInterval) == Reading::kEveryone);
  CHECK(SchemaVersion::reading_due(0ms, kInterval) == Reading::kNone);
  CHECK(SchemaVersion::reading_due(1999ms, kInterval) == Reading::kNone);
  CHECK(SchemaVersion::reading_due(2000ms, kInterval) == Reading::kOne);
  CHECK(SchemaVersion::reading_due(3999ms, kInterval) == Reading::kOne);
  CHECK(SchemaVersion::reading_due(4000ms, kInterval) == Reading::kEveryone);
  CHECK(SchemaVersion::reading_due(0ms, 0ms) == Reading::kEveryone);
}

TEST_CASE("an answer to an older question does not take back what a later one brought") {
  const SchemaVersion::Clock::time_point early{10s};
  const SchemaVersion::Clock::time_point late{20s};
  SchemaVersion version;
  CHECK(version.current() == 0);
  version.learn("a", {}, early);
  CHECK(version.current() == 1);
  version.learn("a", {}, late);
  CHECK(version.current() == 1);
  version.learn("b", {}, early);
  CHECK(version.current() == 1);
  version.learn("b", {}, late);
  CHECK(version.current() == 2);
  version.learn("a", {}, late + 1s);
  CHECK(version.current() == 3);
}

// Fails where an error counts as "unchanged": what met the change would be the message's error.
TEST_CASE("a catalog that cannot be read may have changed") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_database();
  settings.lock_timeout = std::chrono::milliseconds(100);
  settings.schema = std::make_shared<SchemaVersion>();
  auto& version = *settings.schema;
  {
    Session first(settings);
    version.confirm(first);
  }
  Session session(settings);
  CHECK_FALSE(version.has_changed_since(session));
  pqxx::connection connection(settings.url);
  pqxx::work locking(connection);
  locking.exec("LOCK TABLE pg_catalog.pg_cast IN ACCESS EXCLUSIVE MODE");
  CHECK(version.has_changed_since(session));
  locking.abort();
  CHECK_FALSE(version.has_changed_since(session));
}

TEST_CASE("what takes advisory locks of the session without being named is found") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_database();
  SchemaVersion version;
  Session session(settings);
  const auto run = [&](const std::string& sql) {
    pqxx::connection connection(settings.url);
    pqxx::nontransaction(connection).exec(sql);
  };
  run("CREATE TABLE t (id text, n int)");
  version.confirm(session);
  CHECK_FALSE(version.has_session_locks());
  const auto what = GENERATE(
      "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN PERFORM "
      "pg_advisory_lock(1); END$$",
      "CREATE FUNCTION f() RETURNS boolean LANGUAGE sql BEGIN ATOMIC SELECT "
      "pg_try_advisory_lock_shared(1, 2); END",
      "ALTER TABLE t ALTER n SET DEFAULT pg_try_advisory_lock(1)::int",
      "CREATE VIEW v AS SELECT pg_try_advisory_lock(1)");
  CAPTURE(what);
  run(what);
  version.confirm(session);
  CHECK(version.has_session_locks());
  run("CREATE TABLE more (id text)");
  version.confirm(session);
  CHECK(version.has_session_locks());
}

// Fails where a way to change a setting is overlooked: the next message would not notice.
TEST_CASE("settings are compared once something can have changed them") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_database();
  settings.schema = std::make_shared<SchemaVersion>();
  Session session(settings);
  Statement statement{"all", "SELECT 1"};
  statement.direct = std::make_shared<const Statement>(Statement{"direct", "SELECT 1"});
  statement.direct_unverified =
      std::make_shared<const Statement>(Statement{"unverified", "SELECT 1"});
  CHECK(session.form_of(statement).name == "direct");
  CHECK(session.form_of(*statement.direct).name == "direct");

  pqxx::connection connection(settings.url);
  const auto run = [&](const std::string& sql) { pqxx::nontransaction(connection).exec(sql); };
  run("CREATE DOMAIN d AS text");
  run("CREATE TABLE t (id text, n int)");
  const auto plain = application_statement("plain", "INSERT INTO t VALUES ('1', 1)");
  SECTION("neither the application nor the catalog can") {
    settings.schema->confirm(session);
    session.runs_application_statement(plain);
    CHECK(session.form_of(statement).name == "unverified");
    return;
  }
  SECTION("the catalog was not read") {
    session.runs_application_statement(plain);
  }
  SECTION("the statement says so") {
    settings.schema->confirm(session);
    session.runs_application_statement(application_statement("set", "SET search_path = other"));
  }
  SECTION("code of the application ran") {
    settings.schema->confirm(session);
    session.runs_application_code();
  }
  SECTION("the catalog can") {
    // Not every change of it is another version of the schema.
    settings.schema->confirm(session);
    run(GENERATE("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                 "CREATE PROCEDURE f() LANGUAGE sql AS 'SELECT 1'", "CREATE EXTENSION hstore",
                 "ALTER TABLE t ALTER id SET DEFAULT set_config('a.b', '', false)",
                 "ALTER TABLE t ADD CHECK (set_config('a.b', id, false) <> '')",
                 "CREATE POLICY p ON t USING (set_config('a.b', id, false) <> '')",
                 "CREATE VIEW v AS SELECT set_config('a.b', '', false)",
                 "CREATE VIEW v AS SELECT query_to_xml('SELECT 1', false, false, '')",
                 "CREATE VIEW v AS SELECT * FROM pg_settings",
                 "ALTER DOMAIN d SET DEFAULT set_config('a.b', '', false)",
                 "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW"
                 " WHEN (set_config('a.b', new.id, false) <> '')"
                 " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
                 "CREATE RULE r AS ON INSERT TO t DO SELECT set_config('a.b', '', false)"));
    settings.schema->confirm(session);
    session.runs_application_statement(plain);
  }
  CHECK(session.form_of(statement).name == "direct");
}

// Fails if learn() stores it before it has checked that the answer is older.
TEST_CASE("an older answer does not take back what statements may do unnamed") {
  const SchemaVersion::Clock::time_point early{10s};
  const SchemaVersion::Clock::time_point late{20s};
  SchemaVersion version;
  version.learn("b", {.locks = true, .settings = true}, late);
  version.learn("a", {.locks = false, .settings = false}, early);
  CHECK(version.has_session_locks());
  CHECK(version.may_change_settings());
  version.learn("b", {.locks = false, .settings = false}, late + 1s);
  CHECK_FALSE(version.has_session_locks());
  CHECK_FALSE(version.may_change_settings());
}

TEST_CASE("a statement that changes settings of its session is known by its text") {
  const auto [sql, changes] = GENERATE(table<std::string, bool>({
      {"SELECT 1", false},
      {"\n  insert into t values ($1)", false},
      {"WITH a AS (SELECT 1) UPDATE t SET n = 1", false},
      {"DELETE FROM t", false},
      {"MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING", false},
      {"VALUES (1)", false},
      {"SET search_path = other", true},
      {"RESET ALL", true},
      {"DISCARD ALL", true},
      {"DO $$BEGIN END$$", true},
      {"CALL p()", true},
      {"EXPLAIN ANALYZE SELECT 1", true},
      {"-- what it is for\nSELECT 1", true},
      {"SELECT Set_Config('TimeZone', 'UTC', false)", true},
      {"update pg_catalog.pg_settings SET setting = 'UTC' WHERE name = 'TimeZone'", true},
      {"SELECT query_to_xml($1, false, false, '')", true},
      {"SELECT query_to_xmlschema($1, false, false, '')", true},
      {"SELECT query_to_xml_and_xmlschema($1, false, false, '')", true},
      {"SELECT * FROM ts_stat($1)", true},
      {"SELECT ts_rewrite('a'::tsquery, $1)", true},
      {"SELECT \"set_config\"('TimeZone', 'UTC', false)", true},
      {"UPDATE/**/pg_settings SET setting = 'UTC'", true},
      {"SELECT 1 WHERE $1=$2 AND set_config('TimeZone', 'UTC', false) = $3", true},
      {"SELECT set_config_at, my_set_config FROM app_pg_settings", false},
      {"SELECT ts_statistics, ts_rewrites FROM t", false},
      {"SELECT \xc3\xa9set_config FROM t", false},
      {"select(1)", false},
      {"VALUES(1)", false},
      {"selection", true},
      {"SELECT U&\"set\\005fconfig\"('TimeZone', 'UTC', false)", true},
      {"", true},
      {" ", true},
  }));
  CAPTURE(sql);
  CHECK(text_may_change_settings(sql) == changes);
}

TEST_CASE("locks that end with their transaction need no release") {
  SessionSettings settings;
  settings.url = PostgresServer::shared().create_database();
  SchemaVersion version;
  Session session(settings);
  CHECK(version.has_session_locks());
  {
    pqxx::connection connection(settings.url);
    pqxx::nontransaction(connection)
        .exec(
            "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN PERFORM "
            "pg_advisory_xact_lock(1); END$$");
  }
  version.confirm(session);
  CHECK_FALSE(version.has_session_locks());
}
