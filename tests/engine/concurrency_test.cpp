// Messages of one partition side by side: the stored offset follows those that are finished, and
// nothing is processed twice, left out or overtaken within its order key.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <pqxx/connection>
#include <pqxx/transaction>

#include "ledger/register_view.hpp"
#include "ordered_accounts.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Side by side, and in the order of their accounts; fails while the account is closed, waits while
/// somebody has its lock.
constexpr const char* kTogether = R"toml(concurrency = 4
order_by = "{/account}"
)toml";
constexpr const char* kSql = R"toml(sql = [
  "SELECT pg_advisory_xact_lock(hashtext({/account}))",
  { text = "INSERT INTO ordered (account, number) SELECT {/account}, {/number}::bigint WHERE NOT EXISTS (SELECT FROM closed WHERE account = {/account})", expect_rows = 1 },
])toml";

void prepare(PaymentsWorld& world, const std::string& more = "") {
  prepare_accounts(world);
  world.use_handler(std::string(kTogether) + kSql + "\n" + more);
  world.set_postgres_options("lock_timeout = \"60s\"");
  world.set_kafka_options("session_timeout = \"1s\"");
}

std::int64_t ahead(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(*) FROM pawl.out_of_order_completions WHERE outcome IS NOT NULL");
}

void wait_until_ahead(const PaymentsWorld& world, std::int64_t messages) {
  wait_until([&] { return ahead(world) == messages; }, 60s,
             fmt::format("{} messages ahead of the stored offset", messages));
}

/// More than kafka.buffer may hold of 12 partitions: 400 messages of 10 KB for each.
void produce_more_than_buffer(PaymentsWorld& world) {
  const std::string padding(10000, 'x');
  testing::KafkaProducer producer(world.broker().bootstrap());
  for (int i = 0; i < 12 * 400; ++i) {
    testing::Record record;
    record.value = fmt::format(R"({{"owner":"late","padding":"{}"}})", padding);
    record.headers = {{"event-id", fmt::format("owned-{}", i)}};
    record.partition = i % 12;
    producer.send(world.topic(), record);
  }
  producer.flush(180s);
}

/// As `pawl status` reads it.
std::string shown_ahead(const PaymentsWorld& world) {
  pawl::postgres::SessionSettings settings;
  settings.url = world.url();
  pawl::postgres::Session session(settings);
  const auto consumer = world.number("SELECT consumer_id FROM pawl.consumers");
  const auto rows = pawl::ledger::read_register(
      session, "pawl", static_cast<pawl::ledger::ConsumerId>(consumer), "");
  REQUIRE(rows.size() == 1);
  return fmt::format("{} up to {}", rows[0].ahead.finished, rows[0].ahead.up_to);
}

std::string counts(const PaymentsWorld& world) {
  return world.value(
      "SELECT concat_ws(' ', sum(applied_count), sum(duplicate_count), sum(dead_count), "
      "sum(skipped_count), sum(parked_count)) FROM pawl.processed_kafka_offsets");
}

/// Keeps every message of an account waiting in its handler while it lives.
class Busy {
 public:
  Busy(const PaymentsWorld& world, const std::string& account)
      : connection_(world.url()), transaction_(connection_) {
    transaction_.exec("SELECT pg_advisory_xact_lock(hashtext($1))", pqxx::params{account});
  }

 private:
  pqxx::connection connection_;
  pqxx::work transaction_;
};

}  // namespace

TEST_CASE("a message that takes long holds up its own order key and the stored offset only") {
  PaymentsWorld world(1);
  prepare(world);
  std::optional<Busy> busy(std::in_place, world, "slow");
  produce(world, "slow", 1, 2);
  produce(world, "quick", 1, 40);
  produce(world, "other", 1, 10);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  wait_until_ahead(world, 50);
  CHECK(world.stored(0).value_or(-1) == -1);
  CHECK(shown_ahead(world) == "50 up to 51");
  CHECK(order_of(world, "slow").empty());
  busy.reset();
  world.wait_for_stored(0, 51);
  CHECK(order_of(world, "slow") == "1,2");
  CHECK(order_of(world, "quick").starts_with("1,2,3,4,5,6,7,8,9,10,"));
  CHECK(order_of(world, "quick").ends_with(",38,39,40"));
  CHECK(counts(world) == "52 0 0 0 0");
  CHECK(ahead(world) == 0);
  CHECK(shown_ahead(world) == "0 up to -1");
}

TEST_CASE("what is finished ahead of the stored offset is not done again by the next process") {
  const bool unchecked = GENERATE(false, true);
  const bool together = GENERATE(true, false);
  CAPTURE(unchecked, together);
  const std::string more = unchecked ? "key = \"{header:nothing}\"\nmissing_key = \"process\"" : "";
  PaymentsWorld world(1);
  prepare(world, more);
  std::optional<Busy> busy(std::in_place, world, "slow");
  produce(world, "slow", 1, 1);
  produce(world, "quick", 1, 20);
  {
    const auto process = world.start();
    const ShowOnFailure show("killed", *process);
    wait_until_ahead(world, 20);
    process->kill(SIGKILL);
    process->wait(20s);
  }
  busy.reset();
  if (!together)
    world.use_handler(std::string(kSql) + "\n" + more);
  world.drain();
  CHECK(world.stored(0) == 20);
  CHECK(world.number("SELECT count(*) FROM ordered") == 21);
  CHECK(counts(world) == "21 0 0 0 0");
  CHECK(ahead(world) == 0);
}

TEST_CASE("a failing message is tried, and set aside, while others go on") {
  const std::string then = GENERATE("dead-letter", "skip", "park");
  CAPTURE(then);
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.use_handler("concurrency = 4\n" + std::string(kSql));
  world.set("failures.on_failure=" + then);
  world.set("failures.max_attempts=2");
  world.set("failures.retry_initial=10ms");
  world.execute("INSERT INTO closed VALUES ('bad')");
  produce(world, "bad", 1, 2);
  produce(world, "good", 1, 20);
  world.drain();
  CHECK(world.stored(0) == 21);
  CHECK(order_of(world, "good").ends_with(",19,20"));
  CHECK(counts(world) == (then == "dead-letter" ? "20 0 2 0 0"
                          : then == "skip"      ? "20 0 0 2 0"
                                                : "20 0 1 0 1"));
  if (then != "skip")
    CHECK(world.number("SELECT max(attempts) FROM pawl.dead_letters") == 2);
  CHECK(ahead(world) == 0);
}

TEST_CASE("a partition halts at a failing message with later ones done, and goes on from there") {
  PaymentsWorld world(1);
  prepare(world);
  world.set("failures.max_attempts=2");
  world.set("failures.retry_initial=10ms");
  world.execute("INSERT INTO closed VALUES ('bad')");
  produce(world, "first", 1, 3);
  produce(world, "bad", 1, 2);
  produce(world, "good", 1, 10);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.stored(0) == 2);
  CHECK(world.in_register(0, "halt_offset") == "3");
  CHECK(order_of(world, "bad").empty());
  world.execute("DELETE FROM closed");
  SECTION("an operator resumes it") {
    world.execute(
        fmt::format("SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', "
                    "'resume', 'mended') "
                    "FROM pawl.processed_kafka_offsets"));
  }
  SECTION("the process ends and another one begins") {
    stop_cleanly(*process);
    world.drain();
  }
  SECTION("an operator leaves the message out") {
    world.execute(
        fmt::format("SELECT pawl.operator_change(consumer_id, topic, partition, 3, 'running', "
                    "'set', 'left out') "
                    "FROM pawl.processed_kafka_offsets"));
    world.wait_for_stored(0, 14);
    CHECK(order_of(world, "bad") == "2");
    return;
  }
  world.wait_for_stored(0, 14);
  CHECK(order_of(world, "bad") == "1,2");
  CHECK(world.in_register(0, "state") == "running");
  CHECK(world.number("SELECT sum(applied_count) FROM pawl.processed_kafka_offsets") == 15);
  CHECK(world.number("SELECT count(*) FROM ordered") == 15);
  CHECK(ahead(world) == 0);
}

// The statement of a zombie's message that checks the epoch is not the register's advance.
TEST_CASE("a process that wakes up after another one has the partition finishes nothing") {
  PaymentsWorld world(1);
  prepare(world, "isolation = \"" +
                     std::string(GENERATE("read committed", "repeatable read", "serializable")) +
                     "\"");
  produce(world, "a", 1, 1);
  produce(world, "b", 1, 1);
  produce(world, "c", 1, 1);
  const auto frozen = world.start({{"--freeze", "offset_advancing:2"}});
  const ShowOnFailure show("frozen", *frozen);
  wait_until_stopped(*frozen, 60s);
  const auto next = world.start();
  const ShowOnFailure show_next("next", *next);
  world.wait_for_stored(0, 2);
  CHECK(world.number("SELECT count(*) FROM ordered") == 3);
  frozen->kill(SIGCONT);
  produce(world, "a", 2, 2);
  world.wait_for_stored(0, 3);
  CHECK(world.number("SELECT count(*) FROM ordered") == 4);
  CHECK(world.number("SELECT sum(applied_count + duplicate_count) FROM "
                     "pawl.processed_kafka_offsets") == 4);
}

TEST_CASE("a record that has come in place of one that was finished halts its partition") {
  // After a crash messages run alone at first.
  const bool crashed = GENERATE(true, false);
  CAPTURE(crashed);
  PaymentsWorld world(1);
  prepare(world);
  world.set("failures.retry_initial=1s");
  world.execute("INSERT INTO closed VALUES ('slow')");
  produce(world, "slow", 1, 1);
  produce(world, "quick", 1, 3);
  {
    const auto process = world.start();
    wait_until_ahead(world, 3);
    if (crashed) {
      process->kill(SIGKILL);
      process->wait(20s);
    } else {
      stop_cleanly(*process);
    }
  }
  world.execute("DELETE FROM closed");
  world.execute(
      "UPDATE pawl.out_of_order_completions SET digest = digest + 1 WHERE kafka_offset = 2");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.stored(0) == 1);
  CHECK(world.in_register(0, "halt_code") == "completed_record_replaced");
  CHECK(world.in_register(0, "halt_parameters ->> 'offset'") == "2");
}

TEST_CASE("the stored offset does not pass a message of which nothing says that it is finished") {
  PaymentsWorld world(1);
  prepare(world);
  std::optional<Busy> busy(std::in_place, world, "slow");
  produce(world, "slow", 1, 1);
  produce(world, "quick", 1, 3);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  wait_until_ahead(world, 3);
  world.execute("DELETE FROM pawl.out_of_order_completions WHERE kafka_offset = 2");
  busy.reset();
  world.wait_for_stored(0, 3);
  // It was asked again, and its key says that it is a duplicate.
  CHECK(world.number("SELECT count(*) FROM ordered") == 4);
  CHECK(counts(world) == "3 1 0 0 0");
}

TEST_CASE("a partition that is handed over lets what runs come to its end") {
  PaymentsWorld world(2);
  prepare(world);
  produce(world, "slow", 1, 1, 0);
  produce(world, "slow too", 1, 1, 1);
  std::optional<Busy> busy(std::in_place, world, "slow");
  std::optional<Busy> busy_too(std::in_place, world, "slow too");
  const auto process = world.start();
  const ShowOnFailure show("first", *process);
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") ==
               2;
      },
      60s, "two handlers that wait");
  process->kill(SIGTERM);
  produce(world, "quick", 1, 5, 0);
  busy.reset();
  busy_too.reset();
  CHECK(process->wait(60s).code == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE released") == 2);
  CHECK(world.stored(0).value() >= 0);
  CHECK(world.stored(1) == 0);
  CHECK(ahead(world) == 0);
  world.drain();
  CHECK(counts(world) == "7 0 0 0 0");
}

// The mark that the log ends stands behind each message there.
TEST_CASE("what comes while a message takes long is begun") {
  PaymentsWorld world(1);
  prepare(world);
  produce(world, "quick", 1, 3);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 2);
  std::optional<Busy> busy(std::in_place, world, "slow");
  produce(world, "slow", 1, 1);
  for (int i = 4; i < 8; ++i) {
    produce(world, "quick", i, i);
    wait_until_ahead(world, i - 3);
  }
  CHECK(world.stored(0) == 2);
  busy.reset();
  world.wait_for_stored(0, 7);
  CHECK(order_of(world, "quick") == "1,2,3,4,5,6,7");
}

TEST_CASE("statements that have become stale are prepared anew by each thread") {
  PaymentsWorld world(1);
  world.use_handler("name = \"prepared_star\"\nconcurrency = 4");
  world.produce(200);
  const auto process = world.start({{"--prepare"}});
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  for (int i = 0; i < 3; ++i) {
    world.execute(fmt::format("ALTER TABLE accounts ADD COLUMN more_{} integer", i));
    world.produce(200);
    world.wait_until_all_processed();
  }
  CHECK(world.imbalance() == "");
  CHECK(occurrences(*process, "EVENT partition_halted") == 0);
}

TEST_CASE("a message halts its partition once it is the first that is not done") {
  PaymentsWorld world(1);
  prepare(world);
  world.set("failures.retry_initial=2s");
  world.set("failures.max_attempts=3");
  world.execute("INSERT INTO closed VALUES ('later')");
  produce(world, "later", 1, 1);
  // Not JSON: there is no second try.
  testing::Record record;
  record.value = "not JSON";
  record.headers = {{"event-id", "never"}};
  record.partition = 0;
  world.produce_record(record);
  produce(world, "quick", 1, 2);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT attempt_failed " + world.topic() + " 0 1", 60s);
  CHECK(world.in_register(0, "state") == "running");
  world.execute("DELETE FROM closed");
  world.wait_for_state(0, "halted");
  CHECK(world.stored(0) == 0);
  CHECK(world.in_register(0, "halt_offset") == "1");
}

// Fails, by its deadline, when messages that wait for their next attempts may fill kafka.buffer.
TEST_CASE("a topic whose messages are all retried side by side leaves kafka.buffer to another") {
  PaymentsWorld world(12);
  world.execute("CREATE TABLE owners (id text PRIMARY KEY)");
  world.execute("CREATE TABLE owned (event_id text, owner text REFERENCES owners)");
  world.execute("CREATE TABLE healthy (event_id text)");
  world.use_handler(R"toml(concurrency = 8
sql = "INSERT INTO owned VALUES ({header:event-id}, {/owner})")toml");
  world.set("failures.retry_for=1h");
  const auto healthy = world.broker().new_topic("healthy", 2);
  produce_more_than_buffer(world);
  const auto process = world.start({.extra_config = fmt::format(R"toml([[handler]]
topics = ["{}"]
sql = "INSERT INTO healthy VALUES ({{header:event-id}})")toml",
                                                                healthy)});
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.out_of_order_completions WHERE attempts > 0") >= 500;
      },
      120s, "500 messages that wait for their next attempts");
  testing::KafkaProducer producer(world.broker().bootstrap());
  for (int i = 0; i < 200; ++i) {
    testing::Record record;
    record.value = "{}";
    record.headers = {{"event-id", fmt::format("healthy-{}", i)}};
    record.partition = i % 2;
    producer.send(healthy, record);
  }
  producer.flush(60s);
  world.wait_until_processed(200, 60s);
  CHECK(world.number("SELECT count(*) FROM healthy") == 200);
  CHECK(world.number("SELECT count(*) FROM owned") == 0);

  world.execute("INSERT INTO owners VALUES ('late')");
  world.wait_until_processed(12 * 400 + 200, 180s);
  CHECK(world.value("SELECT concat_ws(' ', count(*), count(DISTINCT event_id)) FROM owned") ==
        "4800 4800");
  CHECK(ahead(world) == 0);
}

TEST_CASE("what cannot begin for long is fetched again, and continues in its order") {
  PaymentsWorld world(1);
  prepare(world, "concurrency_window = 16");
  world.set("failures.retry_initial=2s");
  world.set("failures.retry_for=1h");
  world.execute("INSERT INTO closed VALUES ('slow')");
  produce(world, "quick", 1, 2);
  produce(world, "slow", 1, 20);
  produce(world, "quick", 3, 10);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  // Only the first of them has begun.
  process->wait_for_output("EVENT fetch_positioned " + world.topic() + " 0 3", 120s);
  CHECK(world.stored(0) == 1);
  world.execute("DELETE FROM closed");
  world.wait_for_stored(0, 29);
  CHECK(order_of(world, "slow") == "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20");
  CHECK(order_of(world, "quick") == "1,2,3,4,5,6,7,8,9,10");
  CHECK(counts(world) == "30 0 0 0 0");
  CHECK(ahead(world) == 0);
}

TEST_CASE("behind the lock of a table one message of a partition waits at a time") {
  PaymentsWorld world(1);
  prepare(world);
  world.set("postgres.lock_timeout=1s");
  produce(world, "first", 1, 1);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 0);
  pqxx::connection connection(world.url());
  std::optional<pqxx::work> lock(std::in_place, connection);
  lock->exec("LOCK TABLE ordered");
  for (int i = 1; i < 20; ++i)
    produce(world, fmt::format("account-{}", i), 1, 1);
  const auto failures_reach = [&](int count) {
    return occurrences(*process, "EVENT attempt_failed " + world.topic()) >= count;
  };
  // Four at first, and what began in their place.
  wait_until([&] { return failures_reach(8); }, 60s, "messages that waited for the lock in vain");
  std::int64_t most = 0;
  wait_until(
      [&] {
        most = std::max(most, world.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND "
                                           "relation = 'ordered'::regclass AND database = (SELECT "
                                           "oid FROM pg_database WHERE datname = "
                                           "current_database())"));
        return failures_reach(11);
      },
      120s, "more of them");
  CHECK(most == 1);
  lock.reset();
  world.wait_for_stored(0, 19);
  CHECK(counts(world) == "20 0 0 0 0");
}
