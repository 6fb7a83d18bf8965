// What a handler leaves in its session must not reach another message.
#include <fmt/format.h>

#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "pooler.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Two handlers of one topic: one leaves something behind, one writes where search_path leads.
std::string handlers(const PaymentsWorld& world, const std::string& mode,
                     const std::string& leaving) {
  return fmt::format(R"toml(name = "leaves"
when = '{{header:kind}} == "leaves"'
{0}sql = "{1}"

[[handler]]
topics = ["{2}"]
name = "plain"
when = '{{header:kind}} == "plain"'
{0}sql = "{3}"
)toml",
                     mode, leaving, world.topic(),
                     mode.starts_with("batch")
                         ? "INSERT INTO placed (id, at) SELECT u.id, u.at FROM "
                           "unnest({header:event-id}::text[], {/at}::timestamptz[]) AS u (id, at)"
                         : "INSERT INTO placed (id, at) VALUES ({header:event-id}, "
                           "{/at}::timestamptz)");
}

void produce(PaymentsWorld& world, const std::string& id, const std::string& kind) {
  pawl::testing::Record record;
  record.key = id;
  record.value = R"({"at":"2024-06-01 12:00:00"})";
  record.headers = {{"event-id", id}, {"kind", kind}};
  record.partition = 0;
  world.produce_record(record);
}

/// Two tables of one name, of which search_path chooses, and few sessions: if there were more of
/// them than messages that change a setting, none might run another message after one of those.
void set_up(PaymentsWorld& world) {
  world.execute(
      "CREATE TABLE placed (id text, at timestamptz);"
      "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.placed (id text, at timestamptz)");
  world.set("consumer.workers=1");
  world.set("consumer.concurrency=2");
}

}  // namespace

// Fails without the comparison: the messages behind the one that changed a setting are written to
// another tenant's table, as another role, or with another meaning of their values.
TEST_CASE("a setting that a handler leaves in its session reaches no other message") {
  const auto setting =
      GENERATE(std::pair<std::string, std::string>{"search_path", "elsewhere"},
               std::pair<std::string, std::string>{"role", "another"},
               std::pair<std::string, std::string>{"session_replication_role", "replica"},
               std::pair<std::string, std::string>{"TimeZone", "Asia/Tokyo"},
               std::pair<std::string, std::string>{"client_encoding", "LATIN1"},
               std::pair<std::string, std::string>{"statement_timeout", "100s"});
  const std::string mode = GENERATE("", "concurrency = 2\n", "batch = true\n");
  CAPTURE(setting.first, mode);
  PaymentsWorld world(1);
  set_up(world);
  world.execute(
      // Of the whole server, and other cases' as well. What it may not do would fail its own
      // message.
      "DO $$BEGIN IF to_regrole('another') IS NULL THEN CREATE ROLE another SUPERUSER; END IF; "
      "END$$;"
      "CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN new.id := new.id || '!'; "
      "RETURN new; END$$;"
      "CREATE TRIGGER mark BEFORE INSERT ON placed FOR EACH ROW EXECUTE FUNCTION mark()");
  world.use_handler(
      handlers(world, mode,
               fmt::format("SELECT set_config('{}', '{}', false)", setting.first, setting.second)));
  world.set("failures.retry_for=0s");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  std::string expected;
  for (int i = 0; i < 12; ++i) {
    const bool leaves = i % 4 == 1;
    const auto id = fmt::format("é{:02}", i);
    produce(world, id, leaves ? "leaves" : "plain");
    if (!leaves)
      expected += fmt::format("{}{}!", expected.empty() ? "" : " ", id);
  }
  world.wait_until_all_processed();
  CHECK(world.value("SELECT string_agg(id, ' ' ORDER BY id) FROM placed") == expected);
  CHECK(world.number("SELECT count(DISTINCT at) FROM placed") == 1);
  CHECK(world.number("SELECT count(*) FROM elsewhere.placed") == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  INFO(process->output());
  CHECK(occurrences(*process, "EVENT attempt_failed") == 0);
  CHECK(occurrences(*process, "settings of its session") > 0);
  stop_cleanly(*process);
}

// Fails where the comparison is left out although a statement, or what it runs unnamed, can change
// settings.
TEST_CASE("a setting that is changed in a database without functions reaches no other message") {
  const std::string leaving =
      GENERATE("SELECT set_config('search_path', 'elsewhere', false)",
               "UPDATE pg_settings SET setting = 'elsewhere' WHERE name = 'search_path'",
               // By its default.
               "INSERT INTO leaving (id) VALUES ({header:event-id})");
  const std::string mode = GENERATE("", "concurrency = 2\n");
  CAPTURE(leaving, mode);
  PaymentsWorld world(1);
  set_up(world);
  world.execute("CREATE TABLE leaving (id text, path text)");
  if (leaving.starts_with("INSERT")) {
    world.execute(
        "ALTER TABLE leaving ALTER path SET DEFAULT set_config('search_path', 'elsewhere', false)");
  }
  world.use_handler(handlers(world, mode, leaving));
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 12; ++i)
    produce(world, fmt::format("{:02}", i), i % 4 == 1 ? "leaves" : "plain");
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM placed") == 9);
  CHECK(world.number("SELECT count(*) FROM elsewhere.placed") == 0);
  CHECK(occurrences(*process, "settings of its session") > 0);
  stop_cleanly(*process);
}

// Fails where pawl goes on to use statements that it has prepared: they are gone again behind each
// attempt, and the halt that follows needs them too.
TEST_CASE("a handler that deallocates prepared statements stops nothing") {
  const std::string mode = GENERATE("", "concurrency = 2\n", "batch = true\n");
  const bool fails = GENERATE(false, true);
  CAPTURE(mode, fails);
  PaymentsWorld world(1);
  world.execute(
      fmt::format("CREATE TABLE placed (id text, at timestamptz);"
                  "CREATE FUNCTION deallocate() RETURNS void LANGUAGE plpgsql"
                  " AS $$BEGIN EXECUTE 'DEALLOCATE ALL'; {} END$$",
                  fails ? "RAISE 'not this one';" : ""));
  world.use_handler(handlers(world, mode, "SELECT deallocate()"));
  world.set("consumer.workers=1");
  world.set("failures.on_failure=dead-letter");
  world.set("failures.retry_for=0s");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 12; ++i)
    produce(world, fmt::format("{:02}", i), i % 4 == 1 ? "leaves" : "plain");
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM placed") == 9);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters WHERE error LIKE '%not this one%'") ==
        (fails ? 3 : 0));
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == (fails ? 3 : 0));
  INFO(process->output());
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
  // With concurrency each thread has a session, and says so with its next message.
  if (!mode.starts_with("concurrency"))
    CHECK(occurrences(*process, "removed the prepared statements") > 0);
  stop_cleanly(*process);
}

// Fails where a session through a pooler takes for its own what another client has left in one of
// the server processes.
TEST_CASE("what another client of the pooler leaves in a session reaches no message") {
  PaymentsWorld world(1);
  world.execute(
      "DO $$BEGIN IF to_regrole('another') IS NULL THEN CREATE ROLE another SUPERUSER; END IF; "
      "END$$;"
      "CREATE TABLE placed (id text, at timestamptz, who text DEFAULT current_user);"
      "CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.placed (LIKE placed)");
  const pawl::test::Pooler pooler(world, "transaction");
  {
    // As many server processes as there are transactions at once; pawl's sessions use them next.
    std::vector<std::unique_ptr<pqxx::connection>> clients;
    std::vector<std::unique_ptr<pqxx::work>> transactions;
    for (int i = 0; i < 12; ++i) {
      clients.push_back(std::make_unique<pqxx::connection>(pooler.url()));
      transactions.push_back(std::make_unique<pqxx::work>(*clients.back()));
      transactions.back()->exec("SET search_path = elsewhere; SET role = another");
    }
    for (const auto& transaction : transactions)
      transaction->commit();
  }
  world.use_handler(handlers(world, "", "SELECT 1"));
  world.set_postgres_options("pooled = true");
  ProgramOptions options;
  options.url = pooler.url();
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 5; ++i)
    produce(world, fmt::format("{}", i), "plain");
  world.wait_until_processed(5);
  CHECK(world.number("SELECT count(*) FROM placed WHERE who <> 'another'") == 5);
  CHECK(world.number("SELECT count(*) FROM elsewhere.placed") == 0);
  stop_cleanly(*process);
}

// Fails where nobody releases what outlives a transaction: the messages of another session that
// want the same lock wait for it until the process ends.
TEST_CASE("an advisory lock of the session that a function takes ends with its message") {
  const bool by_trigger = GENERATE(false, true);
  const std::string mode = GENERATE("", "concurrency = 2\n", "batch = true\n");
  const bool fails = GENERATE(false, true);
  // With one in flight the advance of each message releases them.
  const int pipeline = mode.empty() ? GENERATE(1, 64) : 64;
  CAPTURE(by_trigger, mode, fails, pipeline);
  PaymentsWorld world(2);
  world.execute(
      "CREATE TABLE placed (id text);"
      "CREATE FUNCTION place(id text) RETURNS void LANGUAGE plpgsql AS $$BEGIN "
      "PERFORM pg_advisory_lock(7); INSERT INTO placed VALUES (id); END$$;"
      "CREATE FUNCTION lock_it() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
      "PERFORM pg_advisory_lock(7); RETURN new; END$$;"
      "CREATE FUNCTION must_be(good boolean) RETURNS void LANGUAGE plpgsql AS $$BEGIN "
      "IF NOT good THEN RAISE 'bad'; END IF; END$$");
  if (by_trigger) {
    world.execute(
        "CREATE TRIGGER lock_it BEFORE INSERT ON placed FOR EACH ROW EXECUTE FUNCTION lock_it()");
  }
  const std::string batch = "FROM unnest({header:event-id}::text[], {/amount}::int[]) AS u (id, n)";
  const std::string inserting = by_trigger ? "INSERT INTO placed " : "";
  world.use_handler(
      mode.starts_with("batch")
          ? fmt::format("{0}sql = [\"{1}SELECT {2} {3}\", \"SELECT must_be(u.n > 0) {3}\"]", mode,
                        inserting, by_trigger ? "u.id" : "place(u.id)", batch)
          : fmt::format("{}sql = [\"{}SELECT {}\", \"SELECT must_be({{/amount}}::int > 0)\"]", mode,
                        inserting, by_trigger ? "{header:event-id}" : "place({header:event-id})"));
  world.set("failures.retry_for=0s");
  world.set("failures.on_failure=dead-letter");
  world.set(fmt::format("consumer.pipeline={}", pipeline));
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 10; ++i)
    world.produce_one(fmt::format("id-{}", i), fails && i % 2 == 1 ? -1 : 1, i % 2);
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM placed") == (fails ? 5 : 10));
  CHECK(world.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
                     "AND database = (SELECT oid FROM pg_database WHERE datname = "
                     "current_database())") == 0);
  if (mode.starts_with("concurrency")) {
    // By which an owner of its partitions recognizes its sessions.
    CHECK(world.number("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
                       "classid = 1885435752 AND objsubid = 2 AND database = (SELECT oid FROM "
                       "pg_database WHERE datname = current_database())") > 0);
  }
  stop_cleanly(*process);
}

// Fails where whatever differs is put back: pawl alone would go on with the old configuration.
TEST_CASE("a setting that the server's configuration changes reaches the messages") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.execute("CREATE TABLE dated (id text, at date)");
  world.use_handler("sql = \"INSERT INTO dated VALUES ({header:event-id}, {/at}::date)\"");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  const auto send = [&](const std::string& id) {
    world.produce_record(
        {.value = R"({"at":"03/04/2026"})", .headers = {{"event-id", id}}, .partition = 0});
  };
  send("before");
  world.wait_for_stored(0, 0);
  {
    pqxx::connection connection(world.url());
    pqxx::nontransaction admin(connection);
    admin.exec("ALTER SYSTEM SET DateStyle = 'ISO, DMY'");
    admin.exec("SELECT pg_reload_conf()");
  }
  wait_until([&] { return world.value("SHOW DateStyle") == "ISO, DMY"; }, 60s,
             "the server to read its configuration");
  send("after");
  world.wait_for_stored(0, 1);
  CHECK(world.value("SELECT string_agg(id || ' ' || to_char(at, 'MM-DD'), ', ' ORDER BY id DESC) "
                    "FROM dated") == "before 03-04, after 04-03");
  stop_cleanly(*process);
}
