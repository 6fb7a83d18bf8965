#include <fmt/format.h>

#include <csignal>
#include <pqxx/pqxx>

#include "group_of_processes.hpp"
#include "ordered_accounts.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kPark = "[failures]\non_failure = \"park\"\nmax_attempts = 1\n";

ProgramOptions parking(std::vector<std::string> arguments = {}) {
  ProgramOptions options;
  options.arguments = std::move(arguments);
  options.extra_config = kPark;
  return options;
}

}  // namespace

TEST_CASE("later messages of a parked record key wait, also over a restart; others go on") {
  PaymentsWorld world(2);
  prepare_accounts(world);
  world.execute("INSERT INTO closed VALUES ('a')");
  produce(world, "a", 1, 3);
  produce(world, "b", 1, 3);
  world.drain(parking());
  CHECK(statuses(world) == "a-1 dead, a-2 parked, a-3 parked");
  CHECK(order_of(world, "b") == "1,2,3");
  CHECK(world.in_register(0, "dead_count || ' ' || parked_count || ' ' || applied_count") ==
        "1 2 3");

  // What keeps it back is the dead letter, not the cause.
  world.execute("DELETE FROM closed");
  produce(world, "a", 4, 4);
  produce(world, "b", 4, 4);
  world.drain(parking());
  CHECK(statuses(world) == "a-1 dead, a-2 parked, a-3 parked, a-4 parked");
  CHECK(order_of(world, "a").empty());
  CHECK(order_of(world, "b") == "1,2,3,4");
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys WHERE key LIKE 'a-%'") == 0);

  // Once nothing waits any more the key is free.
  for (int number = 1; number <= 4; ++number)
    resolve(world, fmt::format("a-{}", number), "discarded");
  produce(world, "a", 5, 6);
  world.drain(parking());
  CHECK(order_of(world, "a") == "5,6");
  CHECK(world.number("SELECT count(*) FROM pawl.parked_keys") == 0);
}

TEST_CASE("a parked message cannot be resolved before those that it waits for") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.execute("INSERT INTO closed VALUES ('a')");
  produce(world, "a", 1, 2);
  world.drain(parking());
  CHECK_THROWS(resolve(world, "a-2", "replayed"));
  resolve(world, "a-1", "discarded");
  resolve(world, "a-2", "replayed");
  CHECK(statuses(world) == "a-1 discarded, a-2 replayed");
}

TEST_CASE("a message without record key parks only itself") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.execute("INSERT INTO closed VALUES ('a')");
  for (int number = 1; number <= 2; ++number) {
    Record record;
    record.value =
        fmt::format(R"({{"account":"{}","number":{}}})", number == 1 ? "a" : "b", number);
    record.headers = {{"event-id", fmt::format("{}", number)}};
    record.partition = 0;
    world.produce_record(record);
  }
  world.drain(parking());
  CHECK(statuses(world) == "1 dead");
  CHECK(order_of(world, "b") == "2");
  CHECK(world.number("SELECT count(*) FROM pawl.parked_keys") == 0);
}

TEST_CASE("duplicates of applied messages pass while their record key is parked") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  produce(world, "a", 1, 1);
  world.drain(parking());
  world.execute("INSERT INTO closed VALUES ('a')");
  produce(world, "a", 2, 2);
  produce(world, "a", 1, 1);
  world.drain(parking());
  // It waits like any other: whether it is a duplicate is decided when its turn comes.
  CHECK(statuses(world) == "a-2 dead, a-1 parked");
  CHECK(order_of(world, "a") == "1");
}

// The claim asks the database each time, so that who owns the partition makes no difference.
TEST_CASE("parked keys hold across rebalances and kills") {
  PaymentsWorld world(4);
  prepare_accounts(world);
  world.execute("INSERT INTO closed SELECT 'a' || p FROM generate_series(0, 3) p");
  world.set_kafka_options("session_timeout = \"2s\"\n");
  for (int partition = 0; partition < 4; ++partition)
    produce(world, fmt::format("a{}", partition), 1, 2, partition);
  std::vector<std::unique_ptr<pawl::testing::ChildProcess>> processes;
  processes.push_back(world.start(parking()));
  world.wait_until_processed(8);
  world.execute("DELETE FROM closed");
  for (int round = 0; round < 3; ++round) {
    processes.push_back(world.start(parking()));
    for (int partition = 0; partition < 4; ++partition) {
      produce(world, fmt::format("a{}", partition), 3 + round, 3 + round, partition);
      produce(world, fmt::format("b{}", partition), 1 + round, 1 + round, partition);
    }
    processes[static_cast<std::size_t>(round)]->kill(SIGKILL);
    processes[static_cast<std::size_t>(round)]->wait(60s);
    world.wait_until_all_processed();
  }
  stop_cleanly(*processes.back());
  for (int partition = 0; partition < 4; ++partition) {
    CAPTURE(partition);
    CHECK(order_of(world, fmt::format("a{}", partition)).empty());
    CHECK(order_of(world, fmt::format("b{}", partition)) == "1,2,3");
  }
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters WHERE status = 'dead'") == 4);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters WHERE status = 'parked'") == 16);
}

// The chained claim of the next message is sent before this one's fate is known: a head that dies
// must park what follows it all the same.
TEST_CASE("nothing of the key overtakes a dying head, however many follow in one fetch") {
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.execute("INSERT INTO closed VALUES ('a')");
  for (int number = 1; number <= 200; ++number) {
    produce(world, "b", number, number);
    produce(world, "a", number, number);
  }
  world.drain(parking());
  CHECK(world.number("SELECT count(*) FROM ordered WHERE account = 'a'") == 0);
  CHECK(world.number("SELECT count(*) FROM ordered WHERE account = 'b'") == 200);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters WHERE status = 'dead'") == 1);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters WHERE status = 'parked'") == 199);
}

namespace {

/// As resolve(), in a transaction that is open until this says commit.
class Resolving {
 public:
  Resolving(const PaymentsWorld& world, const std::string& key)
      : connection_(world.url()), transaction_(connection_) {
    transaction_.exec(
        fmt::format("SELECT pawl.resolve_dead_letter(dead_letter_id, NULL, 'discarded', 'test') "
                    "FROM pawl.dead_letters WHERE idempotency_key = '{}'",
                    key));
  }
  void commit() { transaction_.commit(); }

 private:
  pqxx::connection connection_;
  pqxx::work transaction_;
};

void wait_for_lock_wait(const PaymentsWorld& world) {
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                   "AND wait_event_type = 'Lock'") > 0;
      },
      60s, "somebody to wait for a lock");
}

}  // namespace

// The claim's snapshot may be older than the lock that it waited for.
TEST_CASE("nothing is parked behind a letter that is resolved meanwhile, under any isolation") {
  const std::string isolation = GENERATE("read committed", "repeatable read", "serializable");
  const int pipeline = GENERATE(1, 64);
  CAPTURE(isolation, pipeline);
  PaymentsWorld world(1);
  prepare_accounts(world);
  world.use_handler(fmt::format("isolation = \"{}\"\n{}", isolation, kInOrder));
  world.set(fmt::format("consumer.pipeline={}", pipeline));
  world.execute("INSERT INTO closed VALUES ('a')");
  produce(world, "a", 1, 1);
  const auto process = world.start(parking());
  const ShowOnFailure show("consumer", *process);
  world.wait_for_stored(0, 0);
  world.execute("DELETE FROM closed");

  Resolving head(world, "a-1");
  produce(world, "b", 1, 1);
  produce(world, "a", 2, 4);
  wait_for_lock_wait(world);
  head.commit();
  world.wait_for_stored(0, 4);
  CHECK(statuses(world) == "a-1 discarded");
  CHECK(order_of(world, "a") == "2,3,4");
  CHECK(world.number("SELECT count(*) FROM pawl.parked_keys") == 0);
  // What waits for a lock, or must begin anew, has not failed.
  CHECK(world.in_register(0, "attempts_offset") == "0");
  stop_cleanly(*process);
}
