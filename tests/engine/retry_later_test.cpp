#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <pqxx/pqxx>
#include <sstream>

#include "ordered_accounts.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

ProgramOptions retrying(const std::string& delays, std::vector<std::string> arguments = {}) {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config = fmt::format(
      "[failures]\non_failure = \"retry-later\"\nmax_attempts = 1\nretry_later = {}\n"
      "program_error_retry = \"1s\"\n",
      delays);
  return options;
}

void close(const PaymentsWorld& world, const std::string& account) {
  world.execute(fmt::format("INSERT INTO closed VALUES ('{}')", account));
}
void open(const PaymentsWorld& world, const std::string& account) {
  world.execute(fmt::format("DELETE FROM closed WHERE account = '{}'", account));
}

/// As if the time of every letter that has one were over.
void make_due(const PaymentsWorld& world) {
  world.execute(
      "UPDATE pawl.dead_letters SET due_at = now() WHERE due_at IS NOT NULL AND due_at < "
      "'infinity'");
}

/// As if a process had ended while it retried each letter among others.
void left_by_ended_process(const PaymentsWorld& world) {
  world.execute("UPDATE pawl.dead_letters SET retries = 1, tried_alone = false, tried_pid = 0");
}

std::int64_t letters(const PaymentsWorld& world, const std::string& which) {
  return world.number("SELECT count(*) FROM pawl.dead_letters WHERE " + which);
}

void wait_for_letters(const PaymentsWorld& world, std::int64_t count, const std::string& which) {
  wait_until([&] { return letters(world, which) == count; }, 60s,
             fmt::format("{} letters that are {}", count, which));
}

void wait_for_order(const PaymentsWorld& world, const std::string& account,
                    const std::string& order) {
  wait_until([&] { return order_of(world, account) == order; }, 60s,
             fmt::format("{} of {}", order, account));
}

/// Holds the table of effects, so that a handler waits in the middle.
class Blocked {
 public:
  explicit Blocked(const PaymentsWorld& world)
      : world_(world), connection_(world.url()), transaction_(connection_) {
    transaction_.exec("LOCK TABLE ordered");
  }
  void wait_for_somebody(int handlers = 1) const {
    wait_until(
        [&] {
          return world_.number(
                     "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                     "wait_event_type = 'Lock'") >= handlers;
        },
        60s, "handlers that wait");
  }

 private:
  const PaymentsWorld& world_;
  pqxx::connection connection_;
  pqxx::work transaction_;
};

}  // namespace

TEST_CASE("what fails is tried again by itself, and what waits behind it follows in order") {
  const auto* const handler = GENERATE("", "isolation = \"serializable\"\n");
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.use_handler(fmt::format("{}{}", handler, kInOrder));
  close(world, "a");
  produce(world, "a", 1, 3);
  produce(world, "b", 1, 2);
  const auto process = world.start(retrying(R"(["1h", "2h"])"));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 4);
  CHECK(statuses(world) == "a-1 dead, a-2 parked, a-3 parked");
  CHECK(order_of(world, "b") == "1,2");
  CHECK(letters(world, "retries = 0 AND due_at - died_at BETWEEN '59 minutes' AND '61 minutes'") ==
        1);

  world.execute("UPDATE pawl.dead_letters SET statement = NULL WHERE status = 'dead'");
  make_due(world);
  wait_for_letters(world, 1, "retries = 1 AND due_at > now() + interval '110 minutes'");
  wait_for_letters(world, 1,
                   "statement = 'sql[0]' AND error LIKE 'the statement affected 0 rows%'");
  CHECK(statuses(world) == "a-1 dead, a-2 parked, a-3 parked");

  open(world, "a");
  make_due(world);
  wait_for_order(world, "a", "1,2,3");
  wait_for_letters(world, 3, "status = 'replayed'");
  produce(world, "a", 4, 4);
  wait_for_order(world, "a", "1,2,3,4");
  CHECK(world.number("SELECT count(*) FROM pawl.parked_keys") == 0);
  stop_cleanly(*process);
}

TEST_CASE("retries of different keys run at once, those of one key in order") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  for (const auto* const account : {"a", "b", "c"}) {
    close(world, account);
    produce(world, account, 1, 2);
  }
  const auto process = world.start(retrying(R"(["1h", "2h"])"));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 5);
  for (const auto* const account : {"a", "b", "c"})
    open(world, account);
  {
    const Blocked blocked(world);
    make_due(world);
    blocked.wait_for_somebody(3);
  }
  for (const auto* const account : {"a", "b", "c"})
    wait_for_order(world, account, "1,2");
  wait_for_letters(world, 6, "status = 'replayed'");
  stop_cleanly(*process);
}

TEST_CASE(
    "after the last delay it is a dead letter, and what waits behind it follows an operator") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 3);
  const auto process = world.start(retrying(R"(["1s", "1s"])"));
  const ShowOnFailure show("consumer", *process);
  wait_for_letters(world, 1, "due_at IS NULL");
  CHECK(statuses(world) == "a-1 dead, a-2 parked, a-3 parked");
  CHECK(letters(world, "retries = 2 AND replays = 2 AND reason = 'error'") == 1);
  process->wait_for_output("EVENT message_dead_lettered", 60s);
  CHECK(pawl::testing::occurrences(process->output(), "EVENT retry_scheduled") == 2);
  CHECK(pawl::testing::occurrences(process->output(), "EVENT message_dead_lettered") == 1);
  // The next has its first try when the head is out of the way, and its own delays behind that.
  resolve(world, "a-1", "discarded");
  wait_for_letters(world, 1, "idempotency_key = 'a-2' AND due_at IS NULL");
  CHECK(letters(world, "idempotency_key = 'a-2' AND retries = 2 AND replays = 3") == 1);
  open(world, "a");
  resolve(world, "a-2", "discarded");
  wait_for_order(world, "a", "3");
  stop_cleanly(*process);
}

// A producer's partitioner gives a key another partition when some are added, maybe a lower one.
TEST_CASE("a key that moved to a lower partition is tried again in the order of its messages") {
  PaymentsWorld world(3);
  prepare_accounts(world);
  close(world, "a");
  const auto process = world.start(retrying(R"(["1h", "2h"])"));
  const ShowOnFailure show("consumer", *process);
  produce(world, "a", 1, 3, 2);
  world.wait_for_stored(2, 2);
  produce(world, "a", 4, 6, 1);
  produce(world, "a", 7, 7, 0);
  wait_for_letters(world, 6, "status = 'parked'");
  CHECK(world.value("SELECT DISTINCT pawl.first_dead_letter(consumer_id, topic, record_key_hash) = "
                    "min(dead_letter_id) OVER () FROM pawl.dead_letters") == "t");
  CHECK(letters(world, "due_at < 'infinity'") == 1);
  open(world, "a");
  make_due(world);
  // What was in the first partition comes first, whatever its number is, and offsets decide within
  // each. How Kafka mixed the two that came later is how they were parked.
  wait_for_letters(world, 0, "status IN ('dead', 'parked')");
  const auto order = order_of(world, "a");
  CAPTURE(order);
  CHECK(order.starts_with("1,2,3,"));
  CHECK(order.find('4') < order.find('5'));
  CHECK(order.find('5') < order.find('6'));
  CHECK(order.find('7') != std::string::npos);
  stop_cleanly(*process);
}

TEST_CASE("a parked message that is the first of its key after its position was set back is due") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  const auto options = retrying(R"(["1h", "2h"])");
  produce(world, "a", 1, 1);
  world.drain(options);
  close(world, "a");
  produce(world, "a", 2, 3);
  world.drain(options);
  CHECK(statuses(world) == "a-2 dead, a-3 parked");
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, -1, 'running', 'set', 'test') "
      "FROM pawl.processed_kafka_offsets");
  open(world, "a");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  // It is a duplicate, and nothing else would make it due.
  wait_for_letters(world, 1, "idempotency_key = 'a-1' AND status = 'replayed'");
  make_due(world);
  wait_for_order(world, "a", "1,2,3");
  wait_for_letters(world, 0, "status IN ('dead', 'parked')");
  stop_cleanly(*process);
}

// As a version before stored it: both wait for their turn.
TEST_CASE("a dead letter that is due before its turn makes the first of its key due") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 3);
  world.drain(retrying(R"(["1h", "2h"])"));
  world.execute(
      "UPDATE pawl.dead_letters SET due_at = CASE kafka_offset WHEN 2 THEN now() ELSE 'infinity' "
      "END");
  open(world, "a");
  const auto process = world.start(retrying(R"(["1h", "2h"])"));
  const ShowOnFailure show("consumer", *process);
  wait_for_order(world, "a", "1,2,3");
  stop_cleanly(*process);
}

TEST_CASE("what no later try can help is a dead letter at once") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  Record record;
  record.key = "a";
  record.value = "no JSON";
  record.headers = {{"event-id", "a-1"}};
  record.partition = 0;
  world.produce_record(record);
  world.drain(retrying(R"(["1s"])"));
  CHECK(letters(world, "reason = 'undecodable' AND due_at IS NULL AND retries = 0") == 1);
}

TEST_CASE("a try whose process is killed counts, and its time is kept") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  const auto options = retrying(R"(["1h", "2h"])");
  world.drain(options);
  open(world, "a");
  // The first time it may have been another one's doing: it is made again, alone.
  for (const auto* const tried : {"retries = 1 AND NOT tried_alone", "retries = 1 AND tried_alone",
                                  "retries = 2 AND tried_alone"}) {
    auto process = world.start(options);
    const Blocked blocked(world);
    make_due(world);
    wait_for_letters(world, 1, tried);
    blocked.wait_for_somebody();
    process->kill(SIGKILL);
    process->wait(60s);
    CHECK(letters(world, "due_at > now() + interval '110 minutes' AND status = 'dead'") == 1);
  }
  // Who finds it after that does not run it.
  const auto process = world.start(options);
  make_due(world);
  wait_for_letters(world, 1, "due_at IS NULL");
  process->wait_for_output("EVENT message_dead_lettered", 60s);
  CHECK(order_of(world, "a").empty());
  CHECK(letters(world,
                "retries = 2 AND error LIKE 'the process of retry 2 stopped before the result was "
                "stored, or %. Earlier cause: %'") == 1);
  stop_cleanly(*process);
}

TEST_CASE("a crash takes no retry from dead letters that were tried at once") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  for (const auto* const account : {"a", "b", "c"}) {
    close(world, account);
    produce(world, account, 1, 1);
  }
  const auto options = retrying(R"(["1h"])");
  world.drain(options);
  world.execute("DELETE FROM closed");
  {
    const auto killed = world.start(options);
    const Blocked blocked(world);
    make_due(world);
    blocked.wait_for_somebody(3);
    killed->kill(SIGKILL);
    killed->wait(60s);
  }
  CHECK(letters(world, "retries = 1 AND NOT tried_alone") == 3);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  for (const auto* const account : {"a", "b", "c"})
    wait_for_order(world, account, "1");
  CHECK(letters(world, "retries = 1 AND tried_alone AND status = 'replayed'") == 3);
  stop_cleanly(*process);
}

TEST_CASE("a dead letter that runs alone behind a lock does not keep other messages from running") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  world.execute("CREATE TABLE seen (id text)");
  const auto other = world.broker().new_topic("other", 1);
  auto options = retrying(R"(["1h", "2h"])");
  options.extra_config += fmt::format(
      "[[handler]]\ntopics = [\"{}\"]\nsql = \"INSERT INTO seen VALUES ({{header:event-id}})\"\n",
      other);
  world.drain(options);
  world.execute("DELETE FROM closed");
  world.set("kafka.session_timeout=6s");
  // Ten of them are longer than what this test waits.
  world.set("postgres.lock_timeout=10s");
  std::optional<Blocked> blocked(world);
  {
    const auto killed = world.start(options);
    make_due(world);
    wait_for_letters(world, 1, "retries = 1 AND NOT tried_alone");
    blocked->wait_for_somebody();
    killed->kill(SIGKILL);
    killed->wait(60s);
  }
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  wait_for_letters(world, 1, "retries = 1 AND tried_alone");
  Record record;
  record.value = "{}";
  record.headers = {{"event-id", "other-1"}};
  pawl::testing::KafkaProducer producer(world.broker().bootstrap());
  producer.send(other, record);
  producer.flush();
  wait_until([&] { return world.number("SELECT count(*) FROM seen") == 1; }, 60s,
             "the message of the other topic");
  blocked.reset();
  wait_for_order(world, "a", "1");
  CHECK(letters(world, "status = 'replayed' AND tried_alone") == 1);
  stop_cleanly(*process);
}

// It runs beside this one after `migrate up`: it takes letters by three arguments, and what it
// stores of a failure names no column that is new.
TEST_CASE("a retry by a program of an older version counts, and is not taken for a crash") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  const auto options = retrying(R"(["1h", "2h"])");
  world.drain(options);
  make_due(world);
  CHECK(world.value("SELECT pawl.claim_due_dead_letter(dead_letter_id, 0, '1 hour') FROM "
                    "pawl.dead_letters") == "t");
  world.execute(
      "UPDATE pawl.dead_letters SET status = 'dead', reason = 'error', error = 'again', "
      "died_at = clock_timestamp()");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  wait_for_letters(world, 1, "retries = 2 AND due_at IS NULL");
  stop_cleanly(*process);
}

TEST_CASE("SQL that crashes its server process is tried no more often than others") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.use_handler(
      R"toml(sql = ["SELECT 1 / (count(*) - 1) FROM closed", "INSERT INTO ordered (account) SELECT {/account} FROM (SELECT pg_terminate_backend(pg_backend_pid()) FROM closed) c"])toml");
  produce(world, "a", 1, 1);
  close(world, "a");
  const auto process = world.start(retrying(R"(["1h"])"));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 0);
  // Two rows: the first statement passes, the second ends the connection.
  close(world, "b");
  make_due(world);
  wait_for_letters(world, 1, "due_at IS NULL AND retries = 1");
  stop_cleanly(*process);
}

TEST_CASE("an outage and a wrong program take no try away") {
  pawl::testing::PostgresServer server;
  PaymentsWorld world(1, &server);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  const auto process = world.start(retrying(R"(["1h"])"));
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 0);
  open(world, "a");
  SECTION("the server goes away") {
    {
      const Blocked blocked(world);
      make_due(world);
      wait_for_letters(world, 1, "retries = 1");
      blocked.wait_for_somebody();
      server.stop(StopMode::kImmediate);
    }
    server.start();
  }
  SECTION("a table is missing") {
    world.execute("ALTER TABLE ordered RENAME TO away");
    make_due(world);
    process->wait_for_output("delayed_retry_unavailable: ", 60s);
    wait_for_letters(world, 1, "retries = 0 AND replays >= 1");
    world.execute("ALTER TABLE away RENAME TO ordered");
  }
  wait_for_order(world, "a", "1");
  wait_for_letters(world, 1, "retries = 1 AND status = 'replayed'");
  stop_cleanly(*process);
}

TEST_CASE("an outage that is longer than the delay takes no try from a letter that runs alone") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  auto options = retrying(R"(["1h"])");
  world.drain(options);
  open(world, "a");
  left_by_ended_process(world);
  world.set("postgres.lock_timeout=29s");
  PostgresProxy proxy(world.url());
  options.url = proxy.url();
  std::optional<Blocked> blocked(world);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  wait_for_letters(world, 1, "retries = 1 AND tried_alone");
  blocked->wait_for_somebody();
  proxy.refuse_connections(true);
  proxy.cut_all();
  // Sessions that wait for a lock do not notice that.
  world.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND wait_event_type = 'Lock'");
  make_due(world);
  blocked.reset();
  proxy.refuse_connections(false);
  wait_for_order(world, "a", "1");
  wait_for_letters(world, 1, "retries = 1 AND status = 'replayed'");
  stop_cleanly(*process);
}

TEST_CASE("a letter that is to run alone still is after Kafka did not answer for its message") {
  KafkaBroker broker;
  PaymentsWorld world(1, nullptr, &broker);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  auto options = retrying(R"(["1h"])");
  options.extra_config += "[dead_letters]\nstore_payload = false\n";
  world.drain(options);
  open(world, "a");
  left_by_ended_process(world);
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT partition_assigned", 60s);
  broker.freeze();
  make_due(world);
  process->wait_for_output("could not be read from Kafka", 60s);
  broker.thaw();
  wait_for_order(world, "a", "1");
  CHECK(letters(world, "retries = 1 AND tried_alone AND status = 'replayed'") == 1);
  stop_cleanly(*process);
}

TEST_CASE(
    "a letter whose message only Kafka has is retried next to the partitions of its process") {
  const auto* const assignor = GENERATE("cooperative-sticky", "range");
  PaymentsWorld world(2);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1, 0);
  auto options = retrying(R"(["1h"])");
  options.extra_config += "[dead_letters]\nstore_payload = false\n";
  world.set_kafka_options(fmt::format("assignor = \"{}\"", assignor));
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  // Its partition is assigned by the group before the letter is due.
  wait_for_letters(world, 1, "retries = 0 AND payload = 'omitted'");
  open(world, "a");
  make_due(world);
  wait_for_order(world, "a", "1");
  wait_for_letters(world, 1, "retries = 1 AND status = 'replayed'");
  // Both partitions are still consumed.
  produce(world, "a", 2, 2, 0);
  produce(world, "b", 1, 1, 1);
  wait_for_order(world, "a", "1,2");
  wait_for_order(world, "b", "1");
  stop_cleanly(*process);
}

TEST_CASE("letters of a paused partition wait, those of the others do not") {
  PaymentsWorld world(2);
  prepare_accounts(world);
  for (const auto* account : {"a", "b", "c"}) {
    close(world, account);
    produce(world, account, 1, 1, *account == 'a' ? 0 : 1);
  }
  const auto options = retrying(R"(["1h"])");
  world.drain(options);
  world.execute("DELETE FROM closed");
  const auto set_state = [&](const std::string& state) {
    world.execute(fmt::format(
        "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, '{}', 'pause', 'test') "
        "FROM pawl.processed_kafka_offsets WHERE partition = 0",
        state));
  };
  set_state("paused");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.execute("UPDATE pawl.dead_letters SET due_at = now() WHERE idempotency_key <> 'c-1'");
  wait_for_order(world, "b", "1");
  // Another pass.
  make_due(world);
  wait_for_order(world, "c", "1");
  CHECK(letters(world, "idempotency_key = 'a-1' AND retries = 0") == 1);
  set_state("running");
  wait_for_order(world, "a", "1");
  stop_cleanly(*process);
}

// What ends the process then would be taken for the message's doing, which would be dead in the
// end.
TEST_CASE("no letter is tried beside a message on probation") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  const auto options = retrying(R"(["1h"])");
  world.drain(options);
  world.execute("DELETE FROM closed");
  world.set("kafka.session_timeout=6s");
  // While it waits for its lock it runs; where it began anew, a letter might be tried in between.
  world.set("postgres.lock_timeout=29s");
  std::optional<Blocked> blocked(world);
  {
    const auto killed = world.start(options);
    produce(world, "b", 1, 1);
    // What it checks at its start meets the lock for a moment as well.
    killed->wait_for_output("EVENT partition_assigned", 60s);
    blocked->wait_for_somebody();
    killed->kill(SIGKILL);
    killed->wait(60s);
  }
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] { return world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by <> ''") == 1; },
      60s, "the message to be on probation");
  blocked->wait_for_somebody();
  make_due(world);
  // Who may take a letter does so at once. The one worker waits for its lock and tells nothing
  // meanwhile.
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.dead_letters d WHERE d.retries > 0 OR EXISTS ("
                   "SELECT FROM pg_stat_activity a WHERE a.datname = current_database() AND"
                   " a.pid <> pg_backend_pid() AND a.state = 'idle' AND"
                   " a.query LIKE '%due_at <= statement_timestamp()%' AND"
                   " a.state_change > d.due_at + interval '1 second')") > 0;
      },
      20s, "the process to have looked for letters");
  CHECK(letters(world, "retries = 0") == 1);
  blocked.reset();
  wait_for_order(world, "b", "1");
  wait_for_order(world, "a", "1");
  stop_cleanly(*process);
}

// With one snapshot for a whole transaction each message that is parked meanwhile fails a replay.
TEST_CASE("letters of a key whose messages keep coming are applied under repeatable read") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.use_handler(R"toml(isolation = "repeatable read"
sql = [
  "SELECT pg_sleep(0.1)",
  { text = "INSERT INTO ordered (account, number) SELECT {/account}, {/number}::bigint WHERE NOT EXISTS (SELECT FROM closed WHERE account = {/account})", expect_rows = 1 },
])toml");
  close(world, "a");
  const auto process = world.start(retrying(R"(["1s", "1h"])"));
  const ShowOnFailure show("consumer", *process);
  produce(world, "a", 1, 1);
  wait_for_letters(world, 1, "true");
  int last = 1;
  const auto more = [&] {
    ++last;
    produce(world, "a", last, last);
  };
  more();
  open(world, "a");
  wait_until(
      [&] {
        more();
        return letters(world, "status = 'replayed'") >= 2;
      },
      60s, "letters to be applied while more come behind them");
  wait_until([&] { return letters(world, "status IN ('dead', 'parked')") == 0; }, 120s,
             "all letters to be applied");
  world.wait_until_all_processed();
  stop_cleanly(*process);
  std::string order = "1";
  for (int number = 2; number <= last; ++number)
    order += fmt::format(",{}", number);
  CHECK(order_of(world, "a") == order);
}

TEST_CASE("a letter that was seen while its partition ran is not taken once it is paused") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  world.drain(retrying(R"(["1h"])"));
  make_due(world);
  const auto state = GENERATE(std::string("paused"), std::string("halted"));
  world.execute(fmt::format("UPDATE pawl.processed_kafka_offsets SET state = '{}'", state));
  const auto take =
      "SELECT pawl.claim_due_dead_letter(dead_letter_id, 0, '1 hour') FROM pawl.dead_letters";
  CHECK(world.value(take) == "f");
  world.execute("UPDATE pawl.processed_kafka_offsets SET state = 'running'");
  CHECK(world.value(take) == "t");
}

// Its process may still be at it, and stores its outcome by the number.
TEST_CASE("a retry through a pooler that has no outcome counts, and the next one runs alone") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  const auto options = retrying(R"(["1h", "2h"])");
  world.drain(options);
  open(world, "a");
  left_by_ended_process(world);
  world.execute("UPDATE pawl.dead_letters SET tried_pid = NULL");
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  wait_for_order(world, "a", "1");
  CHECK(letters(world, "retries = 2 AND tried_alone AND status = 'replayed'") == 1);
  stop_cleanly(*process);
}

TEST_CASE("a retry that did not count is made again once, although its number stays") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  world.drain(retrying(R"(["1h"])"));
  left_by_ended_process(world);
  const auto take =
      "SELECT pawl.claim_due_dead_letter(dead_letter_id, 1, '1 hour', true, true, 0, now()) FROM "
      "pawl.dead_letters";
  make_due(world);
  CHECK(world.value(take) == "t");
  // Another process, for which it is still the one that a process left when it ended.
  make_due(world);
  CHECK(world.value(take) == "f");
  // It has failed.
  world.execute("UPDATE pawl.dead_letters SET tried_alone = NULL, tried_pid = NULL");
  CHECK(world.value(take) == "f");
}

TEST_CASE("a letter of a handler that this process does not have is not given up by it") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 1);
  world.drain(retrying(R"(["1h"])"));
  world.execute("UPDATE pawl.dead_letters SET handler = 'another', due_at = now()");
  ProgramOptions parks;
  parks.extra_config =
      "[failures]\non_failure = \"park\"\nmax_attempts = 1\nprogram_error_retry = \"1h\"\n";
  const auto process = world.start(parks);
  const ShowOnFailure show("consumer", *process);
  wait_for_letters(world, 1, "due_at > now() AND retries = 0 AND status = 'dead'");
  stop_cleanly(*process);
}

// A handler without a name is called by its place, which another one has by then.
TEST_CASE("a handler that is inserted above another ends none of that one's retries") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 2);
  world.drain(retrying(R"(["1h"])"));
  world.use_handler(fmt::format(R"toml(when = '{{header:event-id}} == "none"'
on_failure = "dead-letter"
sql = ["SELECT 1"]

[[handler]]
topics = ["{}"]
{})toml",
                                world.topic(), kInOrder));
  const auto process = world.start(retrying(R"(["1h"])"));
  const ShowOnFailure show("consumer", *process);
  open(world, "a");
  make_due(world);
  wait_for_order(world, "a", "1,2");
  wait_for_letters(world, 2, "status = 'replayed'");
  stop_cleanly(*process);
}

TEST_CASE("letters keep being tried when the policy is another one by now") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  close(world, "a");
  produce(world, "a", 1, 2);
  world.drain(retrying(R"(["1h"])"));
  ProgramOptions parks;
  parks.extra_config = "[failures]\non_failure = \"park\"\nmax_attempts = 1\n";
  const auto process = world.start(parks);
  const ShowOnFailure show("consumer", *process);
  make_due(world);
  // There is no delay any more, so it is a dead letter; the one behind it still has its first try.
  wait_for_letters(world, 1, "status = 'dead' AND due_at IS NULL");
  open(world, "a");
  resolve(world, "a-1", "discarded");
  wait_for_order(world, "a", "2");
  stop_cleanly(*process);
}

// Failures come and go while processes share the letters, and are killed.
TEST_CASE("each account's messages take effect once and in their order, whoever dies") {
  constexpr int kAccounts = 8;
  constexpr int kRounds = 4;
  PaymentsWorld world(2);
  prepare_accounts(world);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  const auto options = retrying(R"(["1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s",
    "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"])");
  auto survivor = world.start(options);
  int number = 0;
  for (int round = 0; round < kRounds; ++round) {
    world.execute("DELETE FROM closed");
    for (int account = round % 2; account < kAccounts; account += 2)
      close(world, fmt::format("a{}", account));
    const auto victim = world.start(options);
    for (int i = 0; i < 10; ++i) {
      ++number;
      for (int account = 0; account < kAccounts; ++account)
        produce(world, fmt::format("a{}", account), number, number, account % 2);
    }
    wait_until(
        [&] {
          return world.number(
                     "SELECT coalesce(sum(last_processed_offset + 1), 0) FROM "
                     "pawl.processed_kafka_offsets") >= number * kAccounts;
        },
        90s, "all messages to be behind");
    victim->kill(SIGKILL);
    victim->wait(60s);
  }
  world.execute("DELETE FROM closed");
  std::string all;
  for (int n = 1; n <= number; ++n)
    all += (n == 1 ? "" : ",") + std::to_string(n);
  for (int account = 0; account < kAccounts; ++account)
    wait_for_order(world, fmt::format("a{}", account), all);
  wait_for_letters(world, 0, "resolved_at IS NULL");
  stop_cleanly(*survivor);
}
