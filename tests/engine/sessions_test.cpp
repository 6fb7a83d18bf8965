// What happens to one session, and what it says of the message at hand: errors on a session that
// lives, server processes that answer no more, locks that nobody will let go of.
#include <fmt/format.h>
#include <signal.h>

#include <pqxx/pqxx>
#include <sstream>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr auto kDeadline = 120s;

// One counted attempt is a dead letter already.
constexpr const char* kFirstCounts =
    "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 1\nretry_initial = \"20ms\"\n"
    "retry_max = \"100ms\"\n";

constexpr const char* kCountedSql = R"toml(sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  { text = "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}", expect_rows = 1 },
])toml";

std::string letters(const PaymentsWorld& world) {
  return world.value(
      "SELECT string_agg(idempotency_key || ' ' || coalesce(sqlstate, '-'), ', ' ORDER BY "
      "kafka_offset) FROM pawl.dead_letters");
}

/// The server processes of the world's consumer, stopped for as long as the object lives.
class FrozenBackends {
 public:
  explicit FrozenBackends(const PaymentsWorld& world) {
    std::istringstream found(
        world.value("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE datname = "
                    "current_database() AND application_name LIKE 'pawl %'"));
    for (pid_t pid = 0; found >> pid;) {
      ::kill(pid, SIGSTOP);
      pids_.push_back(pid);
    }
  }
  ~FrozenBackends() {
    for (const auto pid : pids_)
      ::kill(pid, SIGCONT);
  }
  FrozenBackends(const FrozenBackends&) = delete;
  FrozenBackends& operator=(const FrozenBackends&) = delete;

  [[nodiscard]] std::size_t count() const { return pids_.size(); }

 private:
  std::vector<pid_t> pids_;
};

}  // namespace

TEST_CASE("an SQLSTATE of a lost connection counts against the message while the session lives") {
  // What dblink, postgres_fdw and a handler's own RAISE say. 25006 is also what a handler gets that
  // has made its own transaction read-only.
  const std::string raised = GENERATE("08006", "08001", "57P01", "57P03", "25006", "25P03");
  const bool flies = GENERATE(false, true);
  CAPTURE(raised, flies);
  PaymentsWorld world(1);
  world.execute(fmt::format(
      "CREATE FUNCTION ask_remote(id text) RETURNS void LANGUAGE plpgsql AS $$BEGIN IF id = "
      "'poison' THEN RAISE EXCEPTION 'could not connect to the remote server' USING ERRCODE = "
      "'{}'; END IF; END$$",
      raised));
  world.use_handler(R"toml(sql = [
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "SELECT ask_remote({header:event-id})",
])toml");
  if (!flies)
    world.set("consumer.pipeline=1");
  world.produce_one("first", 5, 0);
  world.produce_one("poison", 5, 0);
  world.produce_one("last", 5, 0);
  ProgramOptions options;
  options.extra_config = kFirstCounts;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 2);
  CHECK(letters(world) == "poison " + raised);
  CHECK(world.number("SELECT count(*) FROM ledger") == 2);
  CHECK(world.in_register(0, "owner_epoch >> 24") == "1");
  CHECK(occurrences(*process, "EVENT disconnected") == 0);
  stop_cleanly(*process);
}

TEST_CASE("a transaction that its handler made read-only counts against the message (25006)") {
  PaymentsWorld world(1);
  world.use_handler(R"toml(sql = [
  "SELECT set_config('transaction_read_only', CASE WHEN {header:event-id} = 'poison' THEN 'on' ELSE 'off' END, true)",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml");
  world.produce_one("poison", 5, 0);
  world.produce_one("good", 5, 0);
  ProgramOptions options;
  options.extra_config = kFirstCounts;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 1);
  CHECK(letters(world) == "poison 25006");
  CHECK(occurrences(*process, "EVENT disconnected") == 0);
  stop_cleanly(*process);
}

TEST_CASE("a wait for a twin's uncommitted claim counts against nobody, whatever the timeouts") {
  const auto mode = GENERATE(from_range(modes()));
  CAPTURE(mode.name);
  PaymentsWorld world(1);
  world.use(mode);
  // Far below postgres.lock_timeout: the claim ends as 57014, not as 55P03.
  const std::string handler = mode.handler.empty() ? kCountedSql : mode.handler;
  world.use_handler("timeout = \"200ms\"\n" + handler);
  if (!mode.flies)
    world.set("consumer.pipeline=1");
  world.produce_one("first", 5, 0);
  ProgramOptions options;
  options.extra_config = kFirstCounts;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();

  pqxx::connection twin(world.url());
  pqxx::work claims(twin);
  claims.exec(
      "INSERT INTO pawl.idempotency_keys SELECT (jsonb_populate_record(k, '{\"key\": "
      "\"twin\"}')).* FROM pawl.idempotency_keys k WHERE key = 'first'");
  world.produce_one("twin", 5, 0);
  world.produce_one("last", 5, 0);
  wait_until([&] { return occurrences(*process, "EVENT failed") >= 3 || !letters(world).empty(); },
             kDeadline, "the claim to wait three times");
  CHECK(letters(world).empty());
  CHECK(world.in_register(0, "attempts") == "0");
  claims.abort();
  world.wait_until_all_processed();
  CHECK(letters(world).empty());
  CHECK(world.number("SELECT count(*) FROM ledger") == 3);
  stop_cleanly(*process);
}

TEST_CASE("a server process that is frozen while its session is idle is given up, with an event") {
  PostgresServer server;
  PaymentsWorld world(2, &server);
  world.set_postgres_options("lock_timeout = \"500ms\"");
  world.produce(50);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  const FrozenBackends frozen(world);
  REQUIRE(frozen.count() >= 1);
  process->wait_for_output("has not responded", kDeadline);
  world.produce(50);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}

TEST_CASE("a server that accepts and never answers is told, and waited for") {
  PaymentsWorld world(2);
  PostgresProxy proxy(world.url());
  world.set_postgres_options("lock_timeout = \"500ms\"\nconnect_timeout = \"2s\"");
  ProgramOptions options;
  options.url = proxy.url();
  world.produce(50);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  proxy.stall_all();
  process->wait_for_output("EVENT database_lost", kDeadline);
  world.produce(50);
  proxy.cut_all();
  proxy.resume();
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  proxy.stall_all();
  // With nothing in hand it ends in order, whatever its sessions wait for.
  stop_cleanly(*process);
}

TEST_CASE(
    "a server process whose client was cut off silently is ended once its locks are in the way") {
  PaymentsWorld world(1);
  PostgresProxy proxy(world.url());
  world.set("consumer.pipeline=8");
  world.use_handler(pawl::test::kFlightSql);
  world.set_postgres_options("lock_timeout = \"500ms\"\nstalled_owner_after = \"1s\"");
  ProgramOptions options;
  options.url = proxy.url();
  world.produce(20);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  // The server gets half a flight and no end of it; nobody is told, neither side's socket closes.
  const auto stalled = proxy.stall(Moment::kBefore, [](const auto& event) {
    return event.text.find("UPDATE accounts") != std::string::npos;
  });
  world.produce(20);
  stalled.wait(kDeadline);
  world.wait_until_all_processed(180s);
  CHECK(world.imbalance() == "");
  CHECK(occurrences(*process, "ended PostgreSQL session") == 1);
  stop_cleanly(*process);
}

TEST_CASE("a statement that went stale while a partition is to be acquired is prepared anew") {
  PaymentsWorld world(1);
  world.produce(10);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  // As a later migration may do beside it.
  world.execute(
      "ALTER TABLE pawl.processed_kafka_offsets ALTER state_reason TYPE varchar;"
      "DO $$DECLARE definition text := pg_get_functiondef('pawl.acquire'::regproc); BEGIN DROP "
      "FUNCTION pawl.acquire; EXECUTE replace(definition, 'state_reason text', 'state_reason "
      "varchar'); END$$;"
      "UPDATE pawl.processed_kafka_offsets SET owner_epoch = owner_epoch + 1");
  process->wait_for_output("cached plan must not change result type", kDeadline);
  world.produce(10);
  world.wait_until_all_processed();
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}

// Others find a session by when it began; a text in some styles names another time.
TEST_CASE("a session is recognised whatever the database's date style and time zone") {
  PaymentsWorld world(1);
  world.set_for_database("DateStyle = 'SQL, DMY'");
  world.set_for_database("TimeZone = 'Asia/Kolkata'");
  world.produce(5);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM pawl.processed_kafka_offsets r JOIN pg_stat_activity a "
                     "ON a.pid = r.owner_pid AND a.backend_start = r.owner_backend_start") == 1);
  stop_cleanly(*process);
}
