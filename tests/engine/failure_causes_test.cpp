// Every cause of a failure, produced for real: what counts against the message, what is waited for,
// and what is nobody's fault (docs/failures.md, "Failure classes").
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <pqxx/pqxx>
#include <thread>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

// One counted attempt would already be a dead letter.
constexpr const char* kFirstCounts =
    "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 1\nretry_initial = \"20ms\"\n"
    "retry_max = \"100ms\"\nprogram_error_retry = \"200ms\"\n";

ProgramOptions first_counts() {
  ProgramOptions options;
  options.extra_config = kFirstCounts;
  return options;
}

std::string letters(const PaymentsWorld& world) {
  return world.value(
      "SELECT string_agg(idempotency_key || ' ' || coalesce(sqlstate, '-'), ', ' ORDER BY "
      "kafka_offset) FROM pawl.dead_letters");
}

void wait_for_failure(const pawl::testing::ChildProcess& process, const std::string& text) {
  wait_until(
      [&] {
        const auto output = process.output();
        const auto failed = output.find("EVENT attempt_failed");
        return failed != std::string::npos && output.find(text, failed) != std::string::npos;
      },
      60s, "a try to fail with: " + text);
}

/// What was held against no message: all are applied, once.
void require_all_applied(const PaymentsWorld& world) {
  world.wait_until_all_processed();
  CHECK(letters(world).empty());
  CHECK(world.in_register(0, "attempts") == "0");
  CHECK(world.imbalance() == "");
}

std::string consumers_backends(const PaymentsWorld& world, const std::string& where) {
  return world.value(
      "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pawl %' "
      "AND datname = current_database() AND " +
      where);
}

/// After it was dropped.
void recreate_ledger(const PaymentsWorld& world) {
  world.execute(
      "CREATE TABLE ledger (event_id text PRIMARY KEY, account text NOT NULL, amount bigint NOT "
      "NULL)");
}

/// A small file system of its own for a server, gone with the object.
class SmallDisk {
 public:
  SmallDisk(const std::string& size, const PostgresServer& server) {
    struct stat data{};
    if (::stat((server.folder() / "data").c_str(), &data) != 0)
      throw std::runtime_error("the server has no folder named data");
    const auto options = fmt::format("size={},mode=0700,uid={}", size, data.st_uid);
    mounted_ = ::mount("pawl-test", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_)
      ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TempDir folder_{"disk"};
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("a deadlock is tried again and held against nobody (40P01)") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(sql = [
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
  "UPDATE accounts SET balance = balance WHERE id = 'acc-2'",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml");
  pqxx::connection other(world.url());
  pqxx::work tx(other);
  // The consumer looks for a deadlock first, so it is the victim.
  tx.exec("SET LOCAL deadlock_timeout = '1min'");
  tx.exec("UPDATE accounts SET balance = balance WHERE id = 'acc-2'");
  world.produce_one("e", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return consumers_backends(world, "wait_event_type = 'Lock'") == "1"; }, 60s,
             "the consumer to wait for a lock");
  tx.exec("UPDATE accounts SET balance = balance WHERE id = 'acc-1'");
  tx.commit();
  require_all_applied(world);
  // Again, where its next attempt takes the row before the other session wakes.
  CHECK(occurrences(*process, "deadlock detected") >= 1);
  stop_cleanly(*process);
}

TEST_CASE("a serialization failure is tried again and held against nobody (40001)") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(isolation = "serializable"
sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  pqxx::connection other(world.url());
  pqxx::work tx(other);
  tx.exec("UPDATE accounts SET balance = balance WHERE id = 'acc-1'");
  world.produce_one("e", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return consumers_backends(world, "wait_event_type = 'Lock'") == "1"; }, 60s,
             "the consumer to wait for a lock");
  tx.commit();
  require_all_applied(world);
  wait_for_failure(*process, "could not serialize access");
  stop_cleanly(*process);
}

TEST_CASE("a lock that is not released is reported with its session, and held against nobody") {
  PaymentsWorld world(1);
  world.set_postgres_options("lock_timeout = \"500ms\"");
  pqxx::connection other(world.url());
  pqxx::work tx(other);
  tx.exec("SET LOCAL application_name = 'forgotten psql'");
  tx.exec("SELECT id FROM accounts FOR UPDATE");
  world.produce_one("e", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  const auto conditions = [&](const std::string& cause) {
    return world.number(fmt::format(
        "SELECT count(*) FROM pawl.process_conditions p, "
        "jsonb_to_recordset(p.conditions) AS c (kind text, subject text, cause text) "
        "WHERE c.kind = 'partition_blocked' AND c.subject = '{}[0]' AND c.cause LIKE '{}'",
        world.topic(), cause));
  };
  wait_until(
      [&] {
        return conditions(fmt::format("%session {} (user %, application \"forgotten psql\", idle "
                                      "in transaction, its transaction open since %",
                                      other.backendpid())) == 1;
      },
      120s, "the blocked partition to be stored with the session that blocks it");
  process->wait_for_output("EVENT partition_blocked", 60s);

  // A connection that breaks is no end of the wait.
  const std::string end_who_waits =
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE "
      "'pawl %' AND datname = current_database() AND wait_event_type = 'Lock'";
  wait_until([&] { return world.number(end_who_waits) > 0; }, 60s,
             "a session of the consumer to wait for the lock, and to be ended");
  process->wait_for_output("EVENT database_disconnected", 60s);
  const auto failed = occurrences(*process, "EVENT attempt_failed");
  wait_until([&] { return occurrences(*process, "EVENT attempt_failed") > failed; }, 60s,
             "an attempt on the next session to wait in vain");
  CHECK(occurrences(*process, "EVENT partition_unblocked") == 0);
  CHECK(occurrences(*process, "EVENT partition_blocked") == 1);
  tx.commit();
  require_all_applied(world);
  process->wait_for_output("EVENT partition_unblocked", 60s);
  wait_until([&] { return conditions("%") == 0; }, 60s, "the condition to be removed");
  stop_cleanly(*process);
}

TEST_CASE("partitions behind one lock are reported once, with the command that ends its session") {
  PaymentsWorld world(3);
  // While an attempt waits, the session that blocks it can be found.
  world.set_postgres_options("lock_timeout = \"2s\"");
  pqxx::connection other(world.url());
  pqxx::work tx(other);
  tx.exec("SELECT id FROM accounts FOR UPDATE");
  for (int partition = 0; partition < 3; ++partition)
    world.produce_one("e" + std::to_string(partition), 5, partition);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  const auto blocked = fmt::format(
      "SELECT count(*) FROM pawl.process_conditions p, jsonb_to_recordset(p.conditions) AS c (kind "
      "text, lasting boolean, blocking_pid integer) WHERE c.kind = 'partition_blocked' AND "
      "c.lasting AND c.blocking_pid = {}",
      other.backendpid());
  wait_until([&] { return world.number(blocked) == 3; }, 120s,
             "all partitions to be stored as blocked by the session");
  process->wait_for_output("EVENT partition_blocked", 60s);
  CHECK(occurrences(*process, "EVENT partition_blocked") == 1);
  CHECK(world.number(fmt::format("SELECT count(pg_terminate_backend({}))", other.backendpid())) ==
        1);
  require_all_applied(world);
  process->wait_for_output("EVENT partition_unblocked", 60s);
  CHECK(occurrences(*process, "EVENT partition_blocked") == 1);
  stop_cleanly(*process);
}

TEST_CASE("a lock that is released ends the pause before the next attempt") {
  PaymentsWorld world(1);
  world.set_postgres_options("lock_timeout = \"2s\"");
  const bool side_by_side = GENERATE(false, true);
  CAPTURE(side_by_side);
  world.use_handler(std::string(side_by_side ? "concurrency = 2\n" : "") + R"toml(sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  pqxx::connection other(world.url());
  pqxx::work tx(other);
  tx.exec("SELECT id FROM accounts FOR UPDATE");
  world.produce_one("e", 5, 0);
  ProgramOptions options;
  options.extra_config = "[failures]\nretry_initial = \"1h\"\nretry_max = \"1h\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_for_failure(*process, "lock timeout");
  tx.commit();
  require_all_applied(world);
  stop_cleanly(*process);
}

TEST_CASE("a full disk is waited for (53100)") {
  PostgresServer server;
  const SmallDisk disk("4m", server);
  if (!disk.mounted())
    SKIP("mounting a small disk needs root");
  PaymentsWorld world(1, &server);
  world.execute(fmt::format("CREATE TABLESPACE small LOCATION '{}'", disk.path().string()));
  world.execute("CREATE TABLE filler (t text) TABLESPACE small");
  world.execute("ALTER TABLE filler ALTER t SET STORAGE plain");
  world.use_handler(R"toml(sql = [
  "INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, 60)",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  world.produce(20);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  wait_for_failure(*process, "could not extend file");
  CHECK(world.in_register(0, "state") == "running");
  world.execute("ALTER TABLE filler SET TABLESPACE pg_default");
  require_all_applied(world);
  stop_cleanly(*process);
  world.execute("DROP TABLE filler");
  world.execute("DROP TABLESPACE small");
}

// Kafka's client seeks between two of them, which is no sign that the register will not refuse
// again.
TEST_CASE("what asks the register again and again waits longer each time (PW002)") {
  PaymentsWorld world(1);
  constexpr int kTries = 5;
  // What a sequence says stays, whatever is rolled back.
  world.execute("CREATE SEQUENCE tries");
  for (int i = 1; i <= kTries; ++i)
    world.execute(fmt::format("CREATE SEQUENCE at_{}", i));
  world.execute(fmt::format(R"sql(
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE try bigint := nextval('tries');
      BEGIN
          IF try <= {0} THEN
              PERFORM setval('at_' || try, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
          END IF;
          IF try < {0} THEN
              RAISE EXCEPTION 'not in order' USING ERRCODE = 'PW002';
          END IF;
          RETURN NEW;
      END $$)sql",
                            kTries));
  world.execute(
      "CREATE TRIGGER refuse BEFORE UPDATE ON pawl.processed_kafka_offsets FOR EACH ROW "
      "WHEN (NEW.last_processed_offset > OLD.last_processed_offset) EXECUTE FUNCTION refuse()");
  world.set_postgres_options("retry_initial = \"1s\"\nretry_max = \"30s\"");
  world.produce_one("first", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  require_all_applied(world);
  stop_cleanly(*process);
  // The wait before the n-th try is at least a quarter of 1 s, doubled n - 2 times.
  CHECK(world.number("SELECT (SELECT last_value FROM at_5) - (SELECT last_value FROM at_4)") >=
        1000 * 8 / 4);
}

TEST_CASE("a statement's own limit counts against the message (53400, temp_file_limit)") {
  PostgresServer server({.settings = {"temp_file_limit=64kB", "work_mem=64kB"}});
  PaymentsWorld world(1, &server);
  world.use_handler(R"toml(sql = [
  "SELECT count(*) FROM (SELECT n FROM generate_series(1, CASE WHEN {header:event-id} = 'poison' THEN 200000 ELSE 1 END) n ORDER BY -n OFFSET 1) s",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml");
  world.produce_one("poison", 5, 0);
  world.produce_one("good", 5, 0);
  auto options = first_counts();
  world.drain(options);
  CHECK(letters(world) == "poison 53400");
  CHECK(world.stored(0) == 1);
}

TEST_CASE("too many connections are waited for (53300)") {
  PostgresServer server({.settings = {"max_connections=12", "superuser_reserved_connections=0"}});
  PaymentsWorld world(1, &server);
  world.produce(30);
  // All but the one by which this test looks.
  std::vector<std::unique_ptr<pqxx::connection>> others;
  pqxx::connection look(world.url());
  try {
    while (others.size() < 100)
      others.push_back(std::make_unique<pqxx::connection>(world.url()));
    FAIL("the server took a hundred connections");
  } catch (const pqxx::broken_connection&) {
    SUCCEED("the server is full");
  }
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("too many clients", 60s);
  others.clear();
  require_all_applied(world);
  stop_cleanly(*process);
}

TEST_CASE("a server that has become read-only is waited for (25006)") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.produce(30);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  // What a former primary answers after a failover, to those who are still connected.
  world.execute("ALTER SYSTEM SET default_transaction_read_only = on");
  world.execute("SELECT pg_reload_conf()");
  world.produce(30);
  // Told by the message's refusal (25006), or by the question of a session that is idle.
  process->wait_for_output("the server is read-only", 60s);
  pqxx::connection connection(world.url());
  pqxx::nontransaction tx(connection);
  tx.exec("SET default_transaction_read_only = off");
  tx.exec("ALTER SYSTEM RESET default_transaction_read_only");
  tx.exec("SELECT pg_reload_conf()");
  require_all_applied(world);
  stop_cleanly(*process);
}

TEST_CASE("a statement that runs into its timeout counts against the message (57014)") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(timeout = "500ms"
sql = [
  "SELECT pg_sleep(CASE WHEN {header:event-id} = 'poison' THEN 600 ELSE 0 END)",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml");
  world.produce_one("poison", 5, 0);
  world.produce_one("good", 5, 0);
  world.drain(first_counts());
  CHECK(letters(world) == "poison 57014");
  CHECK(world.stored(0) == 1);
}

TEST_CASE("a deferred constraint that fails at COMMIT counts against the message") {
  PaymentsWorld world(1);
  world.execute(
      "ALTER TABLE ledger ADD CONSTRAINT at_commit UNIQUE (amount) DEFERRABLE INITIALLY DEFERRED");
  world.produce_one("first", 5, 0);
  world.produce_one("same amount", 5, 0);
  world.produce_one("other", 6, 0);
  world.drain(first_counts());
  CHECK(letters(world) == "same amount 23505");
  CHECK(world.number("SELECT count(*) FROM ledger") == 2);
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys") == 2);
}

// Each attempt restarts the whole server; without the count it would go on for ever, and with that
// of other failures 25 times.
TEST_CASE("a message whose SQL crashes its server process is set aside, and no other") {
  const auto [retries, attempts] = GENERATE(table<std::string, int>({
      {"max_attempts = 2\n", 2},
      {"retry_for = \"5m\"\n", 5},
  }));
  CAPTURE(retries);
  PostgresServer server;
  PaymentsWorld world(2, &server);
  world.create_crash_on_poison();
  world.use_handler(kCrashOnPoisonSql);
  world.produce_one("before", 5, 0);
  world.produce_one("poison", 6, 0);
  world.produce_one("after", 7, 0);
  for (int i = 0; i < 50; ++i)
    world.produce_one(fmt::format("beside-{}", i), 1, 1);
  ProgramOptions options;
  options.extra_config =
      "[failures]\non_failure = \"dead-letter\"\nretry_initial = \"10ms\"\n" + retries;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed(120s);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason || ' ' || attempts, ', ') "
                    "FROM pawl.dead_letters") == fmt::format("poison error {}", attempts));
  CHECK(world.number("SELECT count(*) FROM ledger") == 52);
  stop_cleanly(*process);
}

// Between the crash and its count anything may fail; what is to be counted is not forgotten then.
TEST_CASE("a crash of the server process whose count fails is counted once that can be done") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.create_crash_on_poison();
  world.use_handler(R"toml(sql = [
  "SELECT crash_on_poison({header:event-id})",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml");
  world.execute("CREATE SEQUENCE counts");
  world.execute(R"sql(
      CREATE FUNCTION refuse_first_count() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
          IF nextval('counts') = 1 THEN
              RAISE EXCEPTION 'somebody holds the row' USING ERRCODE = '55P03';
          END IF;
          RETURN NEW;
      END $$)sql");
  world.execute(
      "CREATE TRIGGER refuse_first_count BEFORE UPDATE OF attempts ON pawl.processed_kafka_offsets "
      "FOR EACH ROW WHEN (NEW.attempts > OLD.attempts) EXECUTE FUNCTION refuse_first_count()");
  world.produce_one("poison", 6, 0);
  world.produce_one("after", 7, 0);
  ProgramOptions options;
  options.extra_config =
      "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 2\nretry_initial = \"10ms\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed(120s);
  CHECK(occurrences(*process, "EVENT database_disconnected") == 2);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || attempts, ', ') FROM "
                    "pawl.dead_letters") == "poison 2");
  stop_cleanly(*process);
}

TEST_CASE("a missing right blames the program, never the messages (42501)") {
  PaymentsWorld world(1);
  const auto role = "clerk_" + world.topic();
  world.execute(fmt::format("CREATE ROLE \"{}\"", role));
  world.execute(fmt::format("GRANT SELECT, UPDATE ON accounts TO \"{}\"", role));
  world.execute(
      "CREATE FUNCTION enter(id text, account text, amount bigint) RETURNS void LANGUAGE sql "
      "SECURITY DEFINER SET search_path = public AS 'INSERT INTO ledger VALUES ($1, $2, $3)'");
  world.execute(fmt::format("ALTER FUNCTION enter OWNER TO \"{}\"", role));
  world.use_handler(R"toml(sql = [
  "SELECT enter({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  world.produce(30);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.in_register(0, "halt_kind") == "program");
  CHECK(world.in_register(0, "halt_parameters ->> 'sqlstate'") == "42501");
  world.execute(fmt::format("GRANT INSERT ON ledger TO \"{}\"", role));
  require_all_applied(world);
  stop_cleanly(*process);
  world.execute(fmt::format("DROP OWNED BY \"{}\" CASCADE", role));
  world.execute(fmt::format("DROP ROLE \"{}\"", role));
}

TEST_CASE("class 42 and 0A count against the message whose values cause them") {
  struct Row {
    std::string name;
    std::string event;
    std::string sqlstate;
    std::string guard;  // fails for that event
  };
  const auto row = GENERATE(from_range(std::vector<Row>{
      {"a text that is no tsquery", "cat dog", "42601", "{header:event-id}::tsquery IS NOT NULL"},
      {"a name that is no table", "public.nowhere", "42P01",
       "CASE WHEN {header:event-id}::text LIKE '%.%' THEN "
       "{header:event-id}::text::regclass IS NOT NULL ELSE true END"},
      {"a unit that has no truncation", "timezone", "0A000",
       "CASE WHEN {header:event-id} = 'timezone' THEN "
       "date_trunc({header:event-id}, timestamptz '2020-01-01') IS NOT NULL ELSE true END"},
  }));
  CAPTURE(row.name);
  PaymentsWorld world(1);
  world.use_handler(fmt::format(R"toml(sql = ["""
  INSERT INTO ledger SELECT {{header:event-id}}, {{/account}}, {{/amount}}::bigint WHERE {}"""])toml",
                                row.guard));
  world.produce_one("before", 5, 0);
  world.produce_one(row.event, 5, 0);
  world.produce_one("behind", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  CHECK(letters(world) == row.event + " " + row.sqlstate);
  CHECK(world.value("SELECT string_agg(event_id, ' ' ORDER BY event_id) FROM ledger") ==
        "before behind");
  stop_cleanly(*process);
}

TEST_CASE("a row that a policy of its table refuses counts against its message (42501)") {
  PaymentsWorld world(1);
  const auto role = "clerk_" + world.topic();
  world.execute(fmt::format("CREATE ROLE \"{}\"", role));
  world.execute(fmt::format("GRANT SELECT, INSERT ON ledger TO \"{}\"", role));
  world.execute("ALTER TABLE ledger ENABLE ROW LEVEL SECURITY");
  world.execute("CREATE POLICY no_closed ON ledger USING (true) WITH CHECK (event_id <> 'closed')");
  world.execute(
      "CREATE FUNCTION enter(id text, account text, amount bigint) RETURNS void LANGUAGE sql "
      "SECURITY DEFINER SET search_path = public AS 'INSERT INTO ledger VALUES ($1, $2, $3)'");
  world.execute(fmt::format("ALTER FUNCTION enter OWNER TO \"{}\"", role));
  world.use_handler(
      R"toml(sql = ["SELECT enter({header:event-id}, {/account}, {/amount}::bigint)"])toml");
  world.produce_one("closed", 5, 0);
  world.produce_one("open", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  CHECK(letters(world) == "closed 42501");
  CHECK(world.value("SELECT string_agg(event_id, ' ') FROM ledger") == "open");
  stop_cleanly(*process);
  world.execute(fmt::format("DROP OWNED BY \"{}\" CASCADE", role));
  world.execute(fmt::format("DROP ROLE \"{}\"", role));
}

TEST_CASE("what only one message meets again and again is its own while others pass") {
  struct Row {
    std::string sqlstate;
    std::string letter;
    std::string poison;  // what PL/pgSQL does for it
  };
  const auto row = GENERATE(from_range(std::vector<Row>{
      {"42P01", "poison 42P01", "EXECUTE 'INSERT INTO ledger_of_' || id || ' VALUES (1)'"},
      {"53200", "poison 53200",
       "PERFORM pg_advisory_xact_lock(i) FROM generate_series(1, 200000) i"},
      {"57P01", "poison -", "PERFORM pg_terminate_backend(pg_backend_pid())"},
  }));
  CAPTURE(row.sqlstate);
  // Without memory for locks no session begins, of other cases as well.
  pawl::testing::PostgresServer server;
  PaymentsWorld world(2, &server);
  world.execute(fmt::format(
      "CREATE FUNCTION enter(id text, account text, amount bigint) RETURNS void LANGUAGE plpgsql "
      "AS $$BEGIN IF id = 'poison' THEN {}; END IF; INSERT INTO ledger VALUES (id, account, "
      "amount); END$$",
      row.poison));
  world.use_handler(
      R"toml(sql = ["SELECT enter({header:event-id}, {/account}, {/amount}::bigint)"])toml");
  world.produce_one("poison", 5, 0);
  world.produce_one("behind", 5, 0);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  int others = 0;
  wait_until(
      [&] {
        world.produce_one(fmt::format("other-{}", ++others), 5, 1);
        try {
          return letters(world) == row.letter;
        } catch (const pqxx::broken_connection&) {
          return false;  // all locks are taken now, so that no session begins
        } catch (const pqxx::insufficient_resources&) {
          return false;  // or a session that lives gets none
        }
      },
      120s, "the message to be set aside");
  world.wait_until_all_processed();
  CHECK(letters(world) == row.letter);
  CHECK(world.number("SELECT count(*) FROM ledger") == others + 1);
  stop_cleanly(*process);
}

// Nothing else is committed but the heartbeat of the process, which says nothing of the function.
TEST_CASE("a table that a function lacks for all its messages blames none of them (42P01)") {
  PaymentsWorld world(1);
  world.execute(
      "CREATE FUNCTION enter(id text, account text, amount bigint) RETURNS void LANGUAGE plpgsql "
      "AS $$BEGIN EXECUTE 'INSERT INTO later VALUES (1)'; INSERT INTO ledger VALUES (id, account, "
      "amount); UPDATE accounts SET balance = balance + amount, entries = entries + 1 WHERE "
      "accounts.id = enter.account; END$$");
  world.use_handler(
      R"toml(sql = ["SELECT enter({header:event-id}, {/account}, {/amount}::bigint)"])toml");
  world.produce(30);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] {
        const auto output = process->output();
        std::size_t tries = 0;
        for (auto at = output.find("EVENT attempt_failed"); at != std::string::npos;
             at = output.find("EVENT attempt_failed", at + 1))
          ++tries;
        return tries > 2 * 5;
      },
      60s, "more tries than one message alone is given");
  CHECK(letters(world).empty());
  world.execute("CREATE TABLE later (n int)");
  require_all_applied(world);
  stop_cleanly(*process);
}

TEST_CASE("a dropped table blames the program, never the messages (42P01)") {
  PaymentsWorld world(1);
  world.execute("DROP TABLE ledger");
  world.produce(30);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.in_register(0, "halt_parameters ->> 'sqlstate'") == "42P01");
  recreate_ledger(world);
  require_all_applied(world);
  stop_cleanly(*process);
}

// Each attempt takes a number of the sequence, so it passes in the end.
TEST_CASE("a sequence behind pawl's table blames no message (23505)") {
  PaymentsWorld world(1);
  world.execute(
      "SELECT pawl.publish('elsewhere', 'k', 'v') FROM generate_series(1, 3);"
      "ALTER SEQUENCE pawl.outbox_outbox_id_seq RESTART;"
      "CREATE TABLE numbered (id serial PRIMARY KEY, event_id text);"
      "INSERT INTO numbered VALUES (1, 'early')");
  const auto another = world.broker().new_topic("another", 1);
  world.use_handler(
      "sql = [\"INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)\","
      " \"SELECT pawl.publish('elsewhere', 'k', {header:event-id})\"]\n"
      "[[handler]]\ntopics = [\"" +
      another +
      "\"]\n"
      "sql = \"INSERT INTO numbered (event_id) VALUES ({header:event-id})\"\n");
  world.set("outbox.relay=off");
  world.produce_one("a", 1);
  world.produce_one("b", 1);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  CHECK(letters(world).empty());
  CHECK(world.in_register(0, "attempts") == "0");
  CHECK(world.number("SELECT count(*) FROM pawl.outbox") == 5);
  CHECK(occurrences(*process, "EVENT partition_halted") > 0);
  CHECK(occurrences(*process,
                    "SELECT setval('pawl.outbox_outbox_id_seq', (SELECT max(outbox_id) "
                    "FROM pawl.outbox));") == 1);
  CHECK(occurrences(*process,
                    "SELECT setval('public.numbered_id_seq', (SELECT max(id) FROM "
                    "public.numbered));") == 1);
  stop_cleanly(*process);
}

TEST_CASE("a handler's own program_error_retry holds for its messages") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(program_error_retry = "200ms"
sql = ["INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)"])toml");
  world.execute("DROP TABLE ledger");
  world.produce_one("only", 5, 0);
  ProgramOptions options;
  options.extra_config = "[failures]\nprogram_error_retry = \"24h\"\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  recreate_ledger(world);
  wait_until([&] { return world.number("SELECT count(*) FROM ledger") == 1; }, 60s, "the payment");
  stop_cleanly(*process);
}

// Fails when a process tries what stands halted in the register only once.
TEST_CASE("what the program is to blame for is tried again after any number of lost connections") {
  PaymentsWorld world(1);
  world.execute("DROP TABLE ledger");
  world.produce(30);
  const auto process = world.start(first_counts());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  for (int lost = 1; lost <= 3; ++lost) {
    consumers_backends(world, "pg_terminate_backend(pid)");
    wait_until([&] { return occurrences(*process, "EVENT database_disconnected") == lost; }, 60s,
               "the consumer to notice");
    const auto failed = occurrences(*process, "EVENT attempt_failed");
    wait_until([&] { return occurrences(*process, "EVENT attempt_failed") > failed + 1; }, 60s,
               "the message to be tried again, and again");
  }
  recreate_ledger(world);
  require_all_applied(world);
  stop_cleanly(*process);
}

// "cached plan must not change result type": a restart would help, so pawl does as much by itself.
TEST_CASE("a table that is altered under prepared statements stops nothing (0A000)") {
  PaymentsWorld world(1);
  auto options = first_counts();
  if (GENERATE(false, true)) {
    world.use_handler("name = \"prepared_star\"");
    options.arguments = {"--prepare"};
  } else {
    world.use_handler(R"toml(sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
  "SELECT * FROM accounts WHERE id = {/account}",
])toml");
  }
  world.produce(30);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  world.execute("ALTER TABLE accounts ADD COLUMN note text");
  world.produce(30);
  require_all_applied(world);
  // Known from the schema, and so no failure of the message's.
  CHECK(occurrences(*process, "EVENT attempt_failed") == 0);
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
  stop_cleanly(*process);
}

TEST_CASE("statements that go stale again under the same message are prepared anew again") {
  PaymentsWorld world(1);
  world.execute("CREATE TABLE rates (a integer)");
  world.execute("INSERT INTO rates VALUES (1)");
  world.use_handler(R"toml(sql = [
  "SELECT * FROM rates",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  ProgramOptions options;
  options.extra_config =
      "[failures]\nretry_initial = \"20ms\"\nretry_max = \"50ms\"\nprogram_error_retry = "
      "\"100ms\"\n";
  world.execute("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (amount < 0) NOT VALID");
  world.produce(1);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  for (int altered = 1; altered <= 2; ++altered) {
    const auto failed = occurrences(*process, "EVENT attempt_failed");
    wait_until([&] { return occurrences(*process, "EVENT attempt_failed") > failed; }, 60s,
               "the message to be tried");
    world.execute(fmt::format("ALTER TABLE rates ADD COLUMN b{} integer", altered));
    const auto before = occurrences(*process, "EVENT attempt_failed");
    wait_until([&] { return occurrences(*process, "EVENT attempt_failed") > before + 1; }, 60s,
               "the message to be tried in a session of the new schema");
  }
  world.execute("ALTER TABLE ledger DROP CONSTRAINT wrong");
  world.wait_until_all_processed();
  CHECK(letters(world).empty());
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}

// Else an outage at the wrong moment would leave it halted until somebody comes.
TEST_CASE("the one more try of a halted message is one that has an outcome") {
  PaymentsWorld world(1);
  world.execute("ALTER TABLE ledger ADD CONSTRAINT wrong CHECK (amount < 0) NOT VALID");
  world.produce(3);
  ProgramOptions options;
  options.extra_config = "[failures]\nmax_attempts = 1\n";
  {
    const auto process = world.start(options);
    const ShowOnFailure show("first", *process);
    world.wait_for_state(0, "halted");
    stop_cleanly(*process);
  }
  world.execute("ALTER TABLE ledger DROP CONSTRAINT wrong");
  pqxx::connection other(world.url());
  std::optional<pqxx::work> lock(other);
  lock->exec("LOCK TABLE ledger");
  const auto process = world.start(options);
  const ShowOnFailure show("second", *process);
  // What it checks at its start meets the lock for a moment as well.
  process->wait_for_output("EVENT halted_partition_retried", 60s);
  wait_until([&] { return consumers_backends(world, "wait_event_type = 'Lock'") == "1"; }, 60s,
             "the message to be tried");
  consumers_backends(world, "pg_terminate_backend(pid)");
  process->wait_for_output("EVENT database_disconnected", 60s);
  lock.reset();
  world.wait_until_all_processed();
  CHECK(letters(world).empty());
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}
