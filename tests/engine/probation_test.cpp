#include <fmt/format.h>

#include <csignal>
#include <future>
#include <optional>
#include <pqxx/pqxx>

#include "charging_world.hpp"
#include "ledger/offset_register.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

ProgramOptions program(const std::string& policy, const std::vector<std::string>& arguments = {}) {
  ProgramOptions options;
  // One message in hand, with its steps.
  options.arguments = {"--set", "consumer.pipeline=1"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.extra_config =
      fmt::format("[failures]\non_failure = \"{}\"\nmax_crashes = 3\nmax_attempts = 3\n", policy);
  return options;
}

void produce_poison(PaymentsWorld& world, const std::string& id, int partition) {
  Record record;
  record.value = R"({"account":"acc-1","amount":5})";
  record.headers = {{"event-id", id}};
  record.partition = partition;
  world.produce_record(record);
}

/// Starts the program again as a supervisor does, until it ends by itself; how often it crashed.
int run_until_it_survives(PaymentsWorld& world, const ProgramOptions& options, int expected_code) {
  for (int crashes = 0;; ++crashes) {
    const auto process = world.start(options);
    const auto status = process->wait(120s);
    INFO(process->output());
    if (!status.signal) {
      REQUIRE(status.code == expected_code);
      return crashes;
    }
    REQUIRE(status.signal == SIGSEGV);
    REQUIRE(crashes < 20);
  }
}

/// A handler that waits while somebody has the lock.
constexpr const char* kBehindLockSql = R"toml(sql = [
  "SELECT pg_advisory_xact_lock(7)",
  "INSERT INTO ledger VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
])toml";

std::int64_t waiting_handlers(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = "
      "'advisory'");
}

/// From now on the offsets of messages that run alone are in the table `marks`.
void note_marks(const PaymentsWorld& world) {
  world.execute("CREATE TABLE marks (kafka_offset bigint)");
  world.execute(R"sql(
      CREATE FUNCTION note_mark() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
          INSERT INTO marks VALUES (NEW.kafka_offset);
          RETURN NEW;
      END $$)sql");
  world.execute(
      "CREATE TRIGGER note_mark AFTER INSERT OR UPDATE ON pawl.suspects FOR EACH ROW EXECUTE "
      "FUNCTION note_mark()");
}

/// A second topic, and the [[handler]] that enters its messages in the table `seen`.
class Orders {
 public:
  explicit Orders(PaymentsWorld& world)
      : topic_(world.broker().new_topic("orders", 1)), producer_(world.broker().bootstrap()) {
    world.execute("CREATE TABLE seen (place bigserial, topic text)");
  }
  [[nodiscard]] std::string handler() const {
    return fmt::format(
        "\n[[handler]]\ntopics = [\"{}\"]\nsql = \"INSERT INTO seen (topic) VALUES ('orders')\"\n",
        topic_);
  }
  void produce(int count) {
    for (int i = 0; i < count; ++i) {
      Record record;
      record.value = "{}";
      record.headers = {{"event-id", fmt::format("order-{}", i)}};
      producer_.send(topic_, record);
    }
    producer_.flush();
  }

 private:
  std::string topic_;
  pawl::testing::KafkaProducer producer_;
};

/// A handler's call of this API by HTTP.
std::string mail_handler(const PaymentApi& api) {
  return fmt::format(
      R"(http = {{ url = "{}/charges/{{header:event-id}}", headers = {{ Event-Id = "{{header:event-id}}" }}, json = {{ amount = "{{/amount}}" }} }}
)",
      api.url());
}

std::int64_t seen(const PaymentsWorld& world, const std::string& topic) {
  return world.number(fmt::format("SELECT count(*) FROM seen WHERE topic = '{}'", topic));
}

/// Ends the sessions whose handler has waited for an advisory lock for a second, in which a process
/// hears of its signals; how many there were.
std::int64_t end_waiting_sessions(const PaymentsWorld& world) {
  return world.number(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = "
      "current_database() AND wait_event = 'advisory' AND "
      "query_start < clock_timestamp() - interval '1 second'");
}

/// A process whose handlers wait for the advisory lock; its sessions outlive it.
void kill_waiting(const PaymentsWorld& world, pawl::testing::ChildProcess& process) {
  process.kill(SIGKILL);
  REQUIRE(process.wait(60s).signal == SIGKILL);
  wait_until(
      [&] {
        end_waiting_sessions(world);
        return waiting_handlers(world) == 0;
      },
      60s, "its sessions to end");
}

/// Until a transaction of `whose` waits for the lock of the table `seen`.
void wait_for_lock_on_seen(const PaymentsWorld& world, const std::string& whose) {
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = "
                   "'seen'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = "
                   "current_database())") > 0;
      },
      60s, whose + " that waits for the lock");
}

}  // namespace

// Without probation such a message stops the whole group for ever, and with a mere count of
// restarts the innocent messages beside it would be condemned as well.
TEST_CASE("a message that kills its process is set aside, and no other") {
  PaymentsWorld world(8);
  // The code of statements runs while a flight is filled.
  const bool flights = GENERATE(false, true);
  CAPTURE(flights);
  world.use_handler(fmt::format("name = \"{}\"",
                                flights ? "statements_segfault_on_poison" : "segfaults_on_poison"));
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 6; ++partition) {
    for (int i = 0; i < 20; ++i)
      world.produce_one(fmt::format("{}-{}", partition, i), 3, partition);
  }
  // Behind the others' first messages, so that these are in hand when it strikes. Partitions 6 and
  // 7 stay empty: idle ones have nothing in hand.
  produce_poison(world, "poison-1", 3);
  for (int i = 20; i < 40; ++i)
    world.produce_one(fmt::format("3-{}", i), 3, 3);

  // The first crash only opens the probation.
  const auto in_hand = fmt::format("consumer.pipeline={}", flights ? 64 : 1);
  CHECK(run_until_it_survives(world, program("dead-letter", {"--drain", "--set", in_hand}), 0) ==
        4);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ') FROM "
                    "pawl.dead_letters") == "poison-1 crash");
  CHECK(world.processed() == world.produced());
  CHECK(world.number("SELECT count(*) FROM ledger") == 140);
  CHECK(world.number("SELECT sum(entries) FROM accounts") == 140);
  CHECK(world.number("SELECT count(*) FROM pawl.suspects") == 0);
}

TEST_CASE("two messages that kill their process are each found") {
  PaymentsWorld world(4);
  world.use_handler("name = \"segfaults_on_poison\"");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 4; ++partition) {
    produce_poison(world, fmt::format("{}-{}", partition < 2 ? "poison" : "good", partition),
                   partition);
    world.produce_one(fmt::format("after-{}", partition), 3, partition);
  }
  run_until_it_survives(world, program("dead-letter", {"--drain"}), 0);
  CHECK(world.value("SELECT string_agg(idempotency_key || ' ' || reason, ', ' ORDER BY partition) "
                    "FROM pawl.dead_letters") == "poison-0 crash, poison-1 crash");
  CHECK(world.number("SELECT count(*) FROM ledger") == 6);
}

TEST_CASE("halted for its crashes, a message runs again only when an operator says so") {
  PaymentsWorld world(2);
  world.use_handler("name = \"segfaults_on_poison\"");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  produce_poison(world, "poison-1", 0);
  world.produce_one("other", 3, 1);
  CHECK(run_until_it_survives(world, program("halt", {"--drain"}), 4) == 4);
  CHECK(world.in_register(0, "halt_kind") == "crash");
  CHECK(world.in_register(0, "halt_code") == "process_crashed");
  CHECK_THAT(world.in_register(0, "halt_cause"), StartsWith("3 processes crashed"));
  CHECK(world.stored(1) == 0);
  // A restart meets the stored halt and leaves it.
  CHECK(run_until_it_survives(world, program("halt", {"--drain"}), 4) == 0);

  world.use_handler("name = \"payment\"");
  const auto process = world.start(program("halt"));
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT partition_halted", 60s);
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', 'x')"
      "  FROM pawl.processed_kafka_offsets WHERE partition = 0");
  world.wait_for_stored(0, 0);
  CHECK(world.number("SELECT count(*) FROM ledger") == 2);
  stop_cleanly(*process);
}

TEST_CASE("deploys by kill -9 in a row condemn nobody") {
  PaymentsWorld world(8);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(1200);
  for (int deploy = 0; deploy < 10; ++deploy) {
    // Behind what is on probation: a kill that hits the same message each time would be a crash.
    const auto process = world.start(
        program("dead-letter", {"--kill", fmt::format("handler_returned:{}", 30 + 7 * deploy)}));
    REQUIRE(process->wait(120s).signal == SIGKILL);
  }
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  world.drain(program("dead-letter"));
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(world.imbalance() == "");
}

// The mark stands while the database is away; the process that set it has not ended.
TEST_CASE("an outage of the database while a suspect runs is no crash") {
  PostgresServer server;
  PaymentsWorld world(2, &server);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(40);
  const auto killed = world.start(program("dead-letter", {"--kill", "handler_returned:3"}));
  REQUIRE(killed->wait(120s).signal == SIGKILL);
  const auto process = world.start(program("dead-letter", {"--freeze", "handler_returned:1"}));
  const ShowOnFailure show("consumer", *process);
  wait_until_stopped(*process, 60s);
  CHECK(world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by IS NOT NULL") == 1);
  server.stop(pawl::testing::StopMode::kImmediate);
  server.start();
  process->kill(SIGCONT);
  world.wait_until_all_processed();
  CHECK(occurrences(*process, "EVENT probation_attempt_crashed ") == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(world.imbalance() == "");
  stop_cleanly(*process);
}

// Two processes that are both alive take the partition from each other: marks of the living.
TEST_CASE("a mark whose session still lives is no crash") {
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce(10);
  const auto killed = world.start(program("dead-letter", {"--kill", "handler_returned:1"}));
  REQUIRE(killed->wait(120s).signal == SIGKILL);
  const auto stopped = world.start(program("dead-letter", {"--freeze", "message_fetched:1"}));
  const ShowOnFailure show("stopped", *stopped);
  wait_until_stopped(*stopped, 60s);
  const auto heir = world.start(program("dead-letter"));
  world.wait_until_all_processed();
  CHECK(occurrences(*heir, "EVENT probation_attempt_crashed ") == 0);
  // The process that was frozen has not ended.
  CHECK(occurrences(*heir, "EVENT probation_started") == 0);
  stopped->kill(SIGCONT);
  stop_cleanly(*heir);
  stop_cleanly(*stopped);
  CHECK(world.imbalance() == "");
}

TEST_CASE(
    "a suspect that is set aside for its broken connections leaves the others of its number") {
  PostgresServer server;
  PaymentsWorld world(1, &server);
  world.create_crash_on_poison();
  world.use_handler(kCrashOnPoisonSql);
  world.produce_one("poison", 6, 0);
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("after-{}", i), 1, 0);
  // One message was in hand when it ended.
  const auto killed = world.start(program("dead-letter", {"--kill", "key_claimed:1"}));
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  note_marks(world);
  world.drain(program("dead-letter"));
  CHECK(world.value("SELECT string_agg(idempotency_key, ', ') FROM pawl.dead_letters") == "poison");
  CHECK(world.number("SELECT count(*) FROM ledger") == 5);
  CHECK(world.value("SELECT string_agg(DISTINCT kafka_offset::text, ' ') FROM marks") == "0");
}

// A database that fails over while somebody restarts consumers: none of them crashes.
TEST_CASE("processes that end in order while their connection is lost blame no message") {
  PaymentsWorld world(1);
  world.use_handler(kBehindLockSql);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.set("postgres.lock_timeout=29s");
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("innocent-{}", i), 1, 0);
  const ProgramOptions options{{"--set", "consumer.pipeline=1"},
                               "[failures]\non_failure = \"dead-letter\"\nmax_crashes = 3\n"};
  const auto wait_for_handler = [&] {
    wait_until([&] { return waiting_handlers(world) > 0; }, 60s, "a handler that waits");
  };
  pqxx::connection connection(world.url());
  pqxx::work lock(connection);
  lock.exec("SELECT pg_advisory_xact_lock(7)");
  {
    const auto killed = world.start(options);
    wait_for_handler();
    killed->kill(SIGKILL);
    REQUIRE(killed->wait(60s).signal == SIGKILL);
    wait_until([&] { return end_waiting_sessions(world) > 0; }, 60s, "its session to end");
  }
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    const auto process = world.start(options);
    const ShowOnFailure show("consumer", *process);
    wait_until(
        [&] {
          return world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by <> ''") == 1;
        },
        60s, "the message to run alone");
    wait_for_handler();
    process->kill(SIGTERM);
    auto end = std::async(std::launch::async, [&] { return process->wait(60s); });
    // Again, if it comes to its handler again before it has heard of the signal.
    wait_until(
        [&] {
          end_waiting_sessions(world);
          return end.wait_for(0s) == std::future_status::ready;
        },
        90s, "the process to end");
    CHECK(end.get().code == 0);
    CHECK(world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by IS NOT NULL") == 0);
  }
  CHECK(world.number("SELECT coalesce(max(crashes), 0) FROM pawl.suspects") == 0);
  lock.commit();
  world.drain(options);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(world.number("SELECT count(*) FROM ledger") == 3);
}

// Both processes live, so no session that has ended shows the second one what is on probation.
TEST_CASE("messages stay on probation when their partition moves to another live process") {
  PaymentsWorld world(2);
  world.use_handler(kBehindLockSql);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int i = 0; i < 5; ++i) {
    world.produce_one(fmt::format("one-{}", i), 1, 0);
    world.produce_one(fmt::format("other-{}", i), 1, 1);
  }
  const auto start = [&](const std::string& lock_timeout) {
    ProgramOptions options;
    options.arguments = {"--set", "consumer.pipeline=1", "--set",
                         "postgres.lock_timeout=" + lock_timeout};
    return world.start(options);
  };
  pqxx::connection connection(world.url());
  {
    pqxx::work lock(connection);
    lock.exec("SELECT pg_advisory_xact_lock(7)");
    const auto killed = start("29s");
    wait_until([&] { return waiting_handlers(world) == 2; }, 60s, "two handlers that wait");
    kill_waiting(world, *killed);
  }
  pqxx::work lock(connection);
  // No message runs alone meanwhile.
  lock.exec("LOCK TABLE pawl.suspects IN EXCLUSIVE MODE");
  const auto first = start("500ms");
  const ShowOnFailure show_first("first", *first);
  wait_until([&] { return occurrences(*first, "EVENT probation_started") == 2; }, 60s,
             "both partitions to be on probation");
  const auto second = start("500ms");
  const ShowOnFailure show_second("second", *second);
  second->wait_for_output("EVENT probation_started", 60s);
  lock.commit();
  world.wait_until_all_processed();
  CHECK(world.number("SELECT count(*) FROM ledger") == 10);
  stop_cleanly(*first);
  stop_cleanly(*second);
}

TEST_CASE("a process that ends in order while it fetches a partition alone counts no crash") {
  PaymentsWorld world(1);
  PostgresProxy proxy(world.url());
  world.produce_one("before", 1, 0);
  world.drain();
  // As if a process had ended while it fetched what comes next.
  world.execute(
      "INSERT INTO pawl.first_fetches (consumer_id, topic, partition, kafka_offset, crashes) "
      "SELECT consumer_id, topic, partition, last_processed_offset + 1, 1 FROM "
      "pawl.processed_kafka_offsets ON CONFLICT (consumer_id, topic, partition) DO UPDATE SET "
      "kafka_offset = excluded.kafka_offset, crashes = 1");
  world.produce_one("next", 1, 0);
  ProgramOptions options;
  options.arguments = {"--freeze", "fetch_positioned:1"};
  options.url = proxy.url();
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until_stopped(*process, 60s);
  const std::string marks = "SELECT count(*) FROM pawl.first_fetches WHERE fetched_by IS NOT NULL";
  REQUIRE(world.number(marks) == 1);
  proxy.refuse_connections(true);
  proxy.cut_all();
  process->kill(SIGTERM);
  process->kill(SIGCONT);
  process->wait_for_output("EVENT partition_revoked", 60s);
  proxy.refuse_connections(false);
  CHECK_FALSE(process->wait(60s).signal);
  CHECK(world.number(marks) == 0);
}

TEST_CASE("an owner that has lost its partition forgets no crash that the next one counted") {
  PaymentsWorld world(1);
  world.produce_one("before", 1, 0);
  world.drain();
  pawl::postgres::SessionSettings settings;
  settings.url = world.url();
  pawl::postgres::Session session(settings);
  const auto consumer = world.number("SELECT consumer_id FROM pawl.consumers");
  const pawl::ledger::OffsetRegister offsets("pawl",
                                             static_cast<pawl::ledger::ConsumerId>(consumer));
  const pawl::TopicPartition partition{world.topic(), 0};
  const auto lost = offsets.acquire(session, partition, "one").value().epoch;
  const auto held = offsets.acquire(session, partition, "other").value().epoch;
  const std::string counts = "SELECT count(*) FROM pawl.first_fetches WHERE crashes = 1";
  offsets.first_fetches().count(session, partition, held, 1, 1);
  offsets.first_fetches().forget(session, partition, lost);
  CHECK(world.number(counts) == 1);
  offsets.first_fetches().forget(session, partition, held);
  CHECK(world.number(counts) == 0);
}

// 872 mails were on probation, and no payment was applied for 15 minutes.
TEST_CASE("calls of pawl's own are not on probation, and other topics go on") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  Orders orders(world);
  const auto mails = mail_handler(api) + "concurrency = 16\norder_by = \"{header:event-id}\"\n";
  world.use_handler(mails);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int i = 0; i < 100; ++i)
    world.produce_one(fmt::format("mail-{}", i), 1, 0);
  const auto killed = charging.start();
  wait_for_calls(api, 16);
  killed->kill(SIGKILL);
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  // That process did not have this topic.
  world.use_handler(mails + orders.handler());
  orders.produce(50);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  // All mails wait: some for the leases of the dead process, and all for the API.
  wait_until([&] { return seen(world, "orders") == 50; }, 60s, "the orders");
  CHECK(world.stored(0) == -1);
  CHECK(occurrences(*process, "EVENT probation_started") == 0);
  api.release();
  world.wait_until_processed(150);
  stop_cleanly(*process);
}

// Either runs on a thread that gives messages their turns.
TEST_CASE("a call that is made again runs beside a message on probation") {
  const std::string policy = GENERATE("retry-later", "halt");
  CAPTURE(policy);
  PaymentApi api(false, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.charge = false, .status = 429} : ApiAnswer{.stall = true};
  });
  PaymentsWorld world(1);
  Orders orders(world);
  world.use_handler(mail_handler(api) + orders.handler());
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.set("consumer.workers=2");
  // While the order waits for its lock it runs.
  world.set("postgres.lock_timeout=29s");
  const ProgramOptions options{{},
                               fmt::format("[failures]\non_failure = \"{}\"\nmax_attempts = 1\n"
                                           "retry_later = [\"1h\"]\n",
                                           policy)};
  pqxx::connection connection(world.url());
  std::optional<pqxx::work> lock;
  {
    const auto killed = world.start(options);
    const ShowOnFailure show("killed", *killed);
    world.produce_one("mail", 1, 0);
    if (policy == "halt") {
      world.wait_for_state(0, "halted");
    } else {
      wait_until(
          [&] {
            return world.number(
                       "SELECT count(*) FROM pawl.dead_letters WHERE due_at IS NOT NULL") == 1;
          },
          60s, "the retry to be scheduled");
    }
    lock.emplace(connection);
    lock->exec("LOCK TABLE seen");
    orders.produce(5);
    wait_for_lock_on_seen(world, "an order");
    killed->kill(SIGKILL);
    REQUIRE(killed->wait(60s).signal == SIGKILL);
  }
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] { return world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by <> ''") == 1; },
      60s, "an order to run alone");
  world.execute("UPDATE pawl.dead_letters SET due_at = now()");
  wait_until([&] { return api.call_count() == 2; }, 20s, "the call to be made again");
  // The others run alone, and the API has not responded.
  lock.reset();
  wait_until([&] { return seen(world, "orders") == 5; }, 20s, "the orders");
  api.release();
  stop_cleanly(*process);
}

TEST_CASE("calls that have run wait for a message on probation, and keep no session meanwhile") {
  PaymentApi api(true, [](const ApiCall& call) {
    return ApiAnswer{.delay = call.event() == "mail" ? 0ms : 100ms};
  });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  const auto charges = world.broker().new_topic("charges", 1);
  const auto mails = world.broker().new_topic("mails", 1);
  testing::KafkaProducer producer(world.broker().bootstrap());
  const auto produce = [&](const std::string& topic, const std::string& event) {
    Record record;
    record.value = R"({"amount":1})";
    record.headers = {{"event-id", event}};
    producer.send(topic, record);
  };
  world.execute("CREATE TABLE seen (topic text)");
  const std::string payments = "sql = \"INSERT INTO seen VALUES ('payments')\"\n";
  world.use_handler(payments);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.set("consumer.workers=3");
  world.set("consumer.concurrency=2");
  // While the payment waits for its lock it runs.
  world.set("postgres.lock_timeout=29s");
  pqxx::connection connection(world.url());
  pqxx::connection register_connection(world.url());
  std::optional<pqxx::work> lock(std::in_place, connection);
  lock->exec("LOCK TABLE seen");
  {
    const auto killed = charging.start();
    const ShowOnFailure show("killed", *killed);
    world.produce_one("payment", 1, 0);
    wait_for_lock_on_seen(world, "a payment");
    killed->kill(SIGKILL);
    REQUIRE(killed->wait(60s).signal == SIGKILL);
  }
  // The payment runs when calls have begun, and not before.
  std::optional<pqxx::work> row(std::in_place, register_connection);
  row->exec("SELECT FROM pawl.processed_kafka_offsets FOR UPDATE");
  // That process did not have these topics. Code for duplicates runs where a charge is stored.
  world.use_handler(payments + fmt::format("[[handler]]\nname = \"charge\"\ntopics = [\"{}\"]\n"
                                           "concurrency = 8\norder_by = \"{{header:event-id}}\"\n"
                                           "[[handler]]\ntopics = [\"{}\"]\n{}",
                                           charges, mails, mail_handler(api)));
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  std::size_t sent = 0;
  // Eight are with the API at any time, and so when the payment begins to wait for them.
  const auto charge_more = [&] {
    for (; sent < api.call_count() + 16; ++sent)
      produce(charges, fmt::format("charge-{}", sent));
    producer.flush();
  };
  wait_until(
      [&] {
        charge_more();
        return api.call_count() > 0;
      },
      60s, "calls");
  row.reset();
  wait_until(
      [&] {
        charge_more();
        return world.number("SELECT count(*) FROM pawl.suspects WHERE marked_by <> ''") == 1;
      },
      60s, "the payment to run alone");
  produce(mails, "mail");
  producer.flush();
  wait_until(
      [&] {
        return world.number("SELECT count(*) FROM pawl.idempotency_keys WHERE key = 'mail'") == 1;
      },
      20s, "the mail to be stored");
  lock.reset();
  wait_until(
      [&] {
        return world.number("SELECT count(*) FROM pawl.idempotency_keys") ==
               static_cast<std::int64_t>(sent) + 2;
      },
      120s, "all to be stored");
  // No call was made again.
  CHECK(api.call_count() == sent + 1);
  stop_cleanly(*process);
}

TEST_CASE("of the application's calls those that were begun run alone, and no others") {
  PaymentApi api(true, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  // Code for duplicates runs without a lease.
  const std::string handler = GENERATE("deaf", "charge");
  CAPTURE(handler);
  charging.use(handler, "concurrency = 4\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int i = 0; i < 40; ++i)
    world.produce_one(fmt::format("payment-{}", i), 1, 0);
  const auto killed = charging.start();
  wait_for_calls(api, 4);
  killed->kill(SIGKILL);
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  note_marks(world);
  api.release();
  charging.drain();
  CHECK(world.value("SELECT string_agg(DISTINCT kafka_offset::text, ' ') FROM marks") == "0 1 2 3");
  CHECK(world.processed() == 40);
}

TEST_CASE("suspects and the other messages of their process take turns") {
  PaymentsWorld world(1);
  Orders orders(world);
  // Each takes longer than a turn.
  const std::string slow =
      R"toml(sql = ["SELECT pg_sleep(0.12)", "INSERT INTO seen (topic) VALUES ('payments')"])toml";
  world.use_handler(slow);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int i = 0; i < 80; ++i)
    world.produce_one(fmt::format("payment-{}", i), 1, 0);
  const auto killed = world.start();
  wait_until([&] { return seen(world, "payments") > 0; }, 60s, "the first payment");
  killed->kill(SIGKILL);
  REQUIRE(killed->wait(60s).signal == SIGKILL);
  // That process did not have this topic.
  world.use_handler(slow + orders.handler());
  orders.produce(20);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT probation_started", 60s);
  wait_until([&] { return seen(world, "orders") == 20; }, 120s, "the orders");
  process->wait_for_output("EVENT probation_ended", 120s);
  world.wait_until_processed(100);
  // A pipeline of 64 was on probation, and the orders did not wait for all of it.
  CHECK(world.number("SELECT count(*) FROM seen WHERE topic = 'payments' AND place > "
                     "(SELECT max(place) FROM seen WHERE topic = 'orders')") >= 32);
  stop_cleanly(*process);
}

// Either lasts for longer than the test: the lease of the killed process, or the outage.
TEST_CASE("messages on probation wait for no call that waits, nor do those of other order keys") {
  const bool outage = GENERATE(false, true);
  CAPTURE(outage);
  std::optional<PaymentApi> api(std::in_place, false,
                                [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  PaymentsWorld world(1);
  world.use_handler(fmt::format(R"toml(name = "call"
scope = "calls"
when = '{{header:type}} == "call"'
{}
[[handler]]
name = "sql"
topics = ["{}"]
concurrency = 4
order_by = "{{header:event-id}}"
{})toml",
                                mail_handler(*api), world.topic(), kBehindLockSql));
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.set(outage ? "calls.lease_time=2s" : "calls.lease_time=20m");
  world.set("postgres.lock_timeout=29s");
  const auto produce = [&](const std::string& id, const std::string& type) {
    Record record;
    record.value = R"({"account":"acc-1","amount":1})";
    record.headers = {{"event-id", id}, {"type", type}};
    record.partition = 0;
    world.produce_record(record);
  };
  const auto wait_for_applied = [&](int messages) {
    wait_until([&] { return world.number("SELECT count(*) FROM ledger") == messages; }, 60s,
               fmt::format("{} messages of other order keys", messages));
  };
  produce("call", "call");
  for (int i = 1; i <= 8; ++i)
    produce(fmt::format("sql-{}", i), "sql");
  {
    pqxx::connection connection(world.url());
    pqxx::work lock(connection);
    lock.exec("SELECT pg_advisory_xact_lock(7)");
    const auto killed = world.start();
    wait_for_calls(*api, 1);
    wait_until([&] { return waiting_handlers(world) == 4; }, 60s, "four handlers that wait");
    kill_waiting(world, *killed);
  }
  if (outage)
    api.reset();
  note_marks(world);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_applied(8);
  produce("sql-9", "sql");
  wait_for_applied(9);
  process->wait_for_output("EVENT probation_ended", 60s);
  CHECK(world.value("SELECT string_agg(DISTINCT kafka_offset::text, ' ') FROM marks") == "1 2 3 4");
  CHECK(world.number("SELECT count(*) FROM pawl.suspects") == 0);
  CHECK(world.stored(0).value_or(-1) == -1);
  if (api) {
    CHECK(api->call_count() == 1);
    api->release();
  }
  stop_cleanly(*process);
}

// The register has the count of one message of each partition.
TEST_CASE("a message that kills its process is found behind one that waits for a lock") {
  PaymentsWorld world(1);
  world.use_handler(
      "name = \"segfaults_on_poison\"\nconcurrency = 4\norder_by = \"{header:event-id}\"\n");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.set("postgres.lock_timeout=500ms");
  pqxx::connection connection(world.url());
  pqxx::work lock(connection);
  lock.exec("SELECT FROM accounts WHERE id = 'acc-0' FOR UPDATE");
  Record waits;
  waits.value = R"({"account":"acc-0","amount":5})";
  waits.headers = {{"event-id", "waits"}};
  waits.partition = 0;
  world.produce_record(waits);
  produce_poison(world, "poison-1", 0);
  // The first crash only opens the probation.
  for (int crashes = 0; crashes < 4; ++crashes) {
    CAPTURE(crashes);
    const auto process = world.start(program("dead-letter"));
    const ShowOnFailure show("consumer", *process);
    REQUIRE(process->wait(120s).signal == SIGSEGV);
  }
  const auto process = world.start(program("dead-letter"));
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return world.number("SELECT count(*) FROM pawl.dead_letters") == 1; }, 60s,
             "the message that kills to be set aside");
  CHECK(world.value("SELECT idempotency_key || ' ' || reason FROM pawl.dead_letters") ==
        "poison-1 crash");
  CHECK(world.number("SELECT count(*) FROM ledger") == 0);
  lock.commit();
  world.wait_for_stored(0, 1);
  CHECK(world.value("SELECT string_agg(event_id, ' ') FROM ledger") == "waits");
  CHECK(world.number("SELECT count(*) FROM pawl.suspects") == 0);
  stop_cleanly(*process);
}
