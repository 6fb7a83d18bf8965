// Leased handlers whose leases are in Redis.
#include <signal.h>

#include <optional>
#include <pqxx/connection>
#include <pqxx/transaction>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "redis/error.hpp"
#include "redis_server.hpp"

namespace {

/// `where`: of [redis], as it is set on the command line.
void use_redis(ChargingWorld& charging, const std::vector<std::string>& where) {
  charging.world().set("calls.lease_store=redis");
  for (const auto& assignment : where)
    charging.world().set("redis." + assignment);
  charging.world().set("redis.timeout=5s");
  charging.world().set("calls.lease_time=20s");
  charging.world().set_kafka_options("session_timeout = \"1s\"");
}

void use_redis(ChargingWorld& charging, const RedisServer& redis) {
  use_redis(charging, {"address=" + redis.address().text()});
}

/// For tests of what happens when a lease ends, or Redis does not answer.
void hurry(ChargingWorld& charging) {
  charging.world().set("redis.timeout=500ms");
  charging.world().set("calls.lease_time=2s");
}

/// What is told of all keys by "state", with their numbers.
std::string states(const RedisServer& redis) {
  std::map<std::string, int> counts;
  for (const auto& key : redis.ask({"KEYS", "*:history"}).items)
    ++counts[redis.text({"HGET", key.text, "state"})];
  std::string text;
  for (const auto& [state, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

std::size_t holders(const RedisServer& redis) {
  return redis.ask({"KEYS", "*:holder"}).items.size();
}

void produce_to_second_account(PaymentsWorld& world, const std::string& event, int partition) {
  testing::Record record;
  record.key = "acc-2";
  record.value = R"({"account":"acc-2","amount":1})";
  record.headers = {{"event-id", event}};
  record.partition = partition;
  world.produce_record(record);
}

bool is_master(const RedisServer& redis) {
  try {
    return redis.ask({"ROLE"}).items.at(0).text == "master";
  } catch (const redis::Error& error) {
    // Sentinel ends all connections of the one that it promotes, ours too.
    if (error.kind() != redis::Error::Kind::kConnection)
      throw;
    return false;
  }
}

/// Each message calls; what the calls of acc-1 brought cannot be stored while `lock` is held.
struct ChargesBehindLock {
  explicit ChargesBehindLock(int partitions)
      : charging(partitions, api), connection(charging.world().url()) {
    use_redis(charging, redis);
    charging.use("charge_and_record", "concurrency = 8\norder_by = \"{header:event-id}\"");
    lock.emplace(connection).exec("SELECT FROM accounts WHERE id = 'acc-1' FOR UPDATE");
  }

  RedisServer redis;
  PaymentApi api{true};
  ChargingWorld charging;
  pqxx::connection connection;
  std::optional<pqxx::work> lock;
};

}  // namespace

TEST_CASE("leases in Redis: each message is called once, and its state is there for others") {
  RedisServer redis;
  PaymentApi api(false, [](const ApiCall& call) {
    return ApiAnswer{.charge = call.event() != "refused",
                     .status = call.event() == "refused" ? 422 : 200};
  });
  ChargingWorld charging(2, api);
  use_redis(charging, redis);
  charging.use("charge_and_record", "concurrency = 8\non_failure = \"dead-letter\"");
  auto& world = charging.world();
  world.produce(100);
  world.produce_one("refused", 0, 0);
  charging.drain();
  const auto keys = world.number("SELECT count(*) FROM pawl.idempotency_keys");
  CHECK(api.charges() == keys);
  CHECK(charging.stored() == fmt::format("{} {}", keys, keys));
  CHECK(charging.leases() == 0);
  CHECK(holders(redis) == 0);
  CHECK(states(redis) == fmt::format("{} COMPLETED, 1 FAILED", keys));
  CHECK(world.number("SELECT count(*) FROM ledger") == keys);
}

TEST_CASE("leases in Redis: of two messages with one key the second waits for the first") {
  RedisServer redis;
  PaymentApi api(false,
                 [](const ApiCall& call) { return ApiAnswer{.stall = call.event() == "twice"}; });
  ChargingWorld charging(2, api);
  use_redis(charging, redis);
  charging.use("charge",
               "concurrency = 4\norder_by = \"{header:event-id}\"\nscope = \"one for both\"");
  auto& world = charging.world();
  const auto first = charging.start();
  const ShowOnFailure show("first", *first);
  const auto second = charging.start();
  const ShowOnFailure show_second("second", *second);
  charging.wait_for_owners(2);
  world.produce_one("twice", 1, 0);
  world.produce_one("twice", 1, 1);
  for (int i = 0; i < 20; ++i)
    world.produce_one(fmt::format("other-{}", i), 1, i % 2);
  wait_until([&] { return states(redis) == "20 COMPLETED, 1 PROCESSING"; }, 60s,
             "the others to be finished");
  CHECK(holders(redis) == 1);
  api.release();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 21);
  CHECK(charging.finished() == 22);
}

TEST_CASE("leases in Redis: without it no call begins, nothing is lost, and it goes on by itself") {
  // Stopped, or standing still: both are away.
  const bool stands_still = GENERATE(false, true);
  CAPTURE(stands_still);
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  use_redis(charging, redis);
  hurry(charging);
  charging.use("charge", "concurrency = 8\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  world.produce_one("in hand", 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  if (stands_still) {
    redis.freeze();
  } else {
    redis.stop();
  }
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  process->wait_for_output("EVENT redis_unreachable", 60s);
  // The call is told to end: its lease cannot be extended.
  process->wait_for_output("EVENT call_finished", 60s);
  CHECK(api.call_count() == 1);
  api.release();
  if (stands_still) {
    redis.thaw();
  } else {
    redis.start();
  }
  process->wait_for_output("EVENT redis_reachable", 60s);
  world.wait_until_all_processed();
  // The one that was cut off is called for again, and no other.
  CHECK(api.call_count() == 7);
  CHECK(api.charges() == 6);
  CHECK(charging.finished() == 6);
}

TEST_CASE(
    "leases in Redis: where all of it is lost, calls in hand are told, and none is recorded "
    "twice") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  use_redis(charging, redis);
  hurry(charging);
  charging.use("charge", "concurrency = 4\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  for (int i = 0; i < 4; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 4);
  redis.ask({"FLUSHALL"});
  // They are told to end, long before the handler's timeout.
  wait_until(
      [&] { return pawl::testing::occurrences(process->output(), "EVENT call_finished") == 4; },
      20s, "the calls to end");
  world.wait_until_all_processed();
  CHECK(api.call_count() == 8);
  CHECK(api.charges() == 4);
  CHECK(charging.finished() == 4);
  CHECK(world.number("SELECT count(*) FROM pawl.lease_losses") == 0);
  CHECK(charging.stored() == "4 4");
}

TEST_CASE("leases in Redis: what a process did that woke up behind its lease is not recorded") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  use_redis(charging, redis);
  hurry(charging);
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  const auto frozen = charging.start();
  const ShowOnFailure show("frozen", *frozen);
  wait_for_calls(api, 1);
  frozen->kill(SIGSTOP);
  const auto next = charging.start();
  const ShowOnFailure show_next("next", *next);
  world.wait_until_all_processed();
  CHECK(api.call_count() == 2);
  api.release();
  frozen->kill(SIGCONT);
  wait_until([&] { return world.number("SELECT count(*) FROM pawl.lease_losses") == 1; }, 60s,
             "the loss to be recorded");
  CHECK(charging.finished() == 1);
  CHECK(api.charges() == 1);
}

TEST_CASE("leases in Redis: a process killed at any step leaves each message recorded once") {
  RedisServer redis;
  PaymentApi api(true);
  ChargingWorld charging(2, api);
  use_redis(charging, redis);
  charging.use("charge_and_record", "concurrency = 8");
  auto& world = charging.world();
  world.set("failures.max_attempts=0");
  int nth = 0;
  for (const auto* step :
       {"message_fetched", "lease_acquired", "call_finished", "key_claimed", "handler_returned",
        "offset_advancing", "commit_sent", "message_committed"}) {
    world.produce(30);
    nth += 5;
    const auto process =
        charging.start({"--events", "--kill", fmt::format("{}:{}", step, 1 + nth % 17)});
    const ShowOnFailure show(step, *process);
    REQUIRE(process->wait(120s).signal == SIGKILL);
    // Nobody waits for the time of the dead.
    for (const auto& key : redis.ask({"KEYS", "*:holder"}).items)
      redis.ask({"DEL", key.text});
  }
  charging.drain();
  CHECK(world.imbalance() == "");
  const auto keys = world.number("SELECT count(*) FROM pawl.idempotency_keys");
  CHECK(charging.stored() == fmt::format("{} {}", keys, keys));
  // A kill leaves eight calls in hand at most.
  CHECK(static_cast<std::int64_t>(api.call_count()) <= keys + 8 * 8);
  CHECK(holders(redis) == 0);
}

TEST_CASE("leases in Redis: calls that wait for a lock to be stored leave the threads to others") {
  ChargesBehindLock behind_lock(2);
  auto& [redis, api, charging, connection, lock] = behind_lock;
  auto& world = charging.world();
  world.set("consumer.concurrency=2");
  world.set("postgres.lock_timeout=1s");
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 8; ++i)
    world.produce_one(fmt::format("blocked-{}", i), 1, 0);
  wait_for_calls(api, 8);
  // Each hand has waited in vain for one of them.
  wait_until([&] { return occurrences(*process, "cannot store the outcome of a call") >= 2; }, 60s,
             "calls that wait for the lock in vain");
  for (int i = 0; i < 20; ++i)
    produce_to_second_account(world, fmt::format("other-{}", i), 1);
  world.wait_for_stored(1, 19);
  CHECK(world.stored(0) == -1);
  process->wait_for_output("EVENT partition_blocked", 120s);
  lock.reset();
  world.wait_until_all_processed();
  // No call was made again.
  CHECK(api.call_count() == 28);
  CHECK(charging.counts() == "28 0 0");
  CHECK(charging.stored() == "28 28");
}

TEST_CASE("leases in Redis: a lock that is released ends the wait of calls to be stored") {
  ChargesBehindLock behind_lock(1);
  auto& [redis, api, charging, connection, lock] = behind_lock;
  auto& world = charging.world();
  // Nothing else ends it in time.
  world.set("failures.retry_initial=1h");
  world.set("failures.retry_max=1h");
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("blocked-{}", i), 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("cannot store the outcome of a call", 60s);
  lock.reset();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 3);
  CHECK(charging.stored() == "3 3");
}

TEST_CASE("leases in Redis: a call of before the partition was acquired anew delays no other") {
  ChargesBehindLock behind_lock(1);
  auto& [redis, api, charging, connection, lock] = behind_lock;
  auto& world = charging.world();
  world.set("postgres.lock_timeout=1s");
  world.set("failures.retry_initial=1h");
  world.set("failures.retry_max=1h");
  world.produce_one("blocked", 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("cannot store the outcome of a call", 60s);
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', "
      "'test')"
      " FROM pawl.processed_kafka_offsets WHERE partition = 0");
  wait_until([&] { return occurrences(*process, "EVENT partition_assigned") >= 2; }, 60s,
             "the partition to be acquired anew");
  produce_to_second_account(world, "free", 0);
  wait_until([&] { return charging.stored() == "1 1"; }, 60s, "the call that waits for no lock");
  lock.reset();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 2);
  CHECK(charging.stored() == "2 2");
  CHECK(charging.finished() == 2);
}

TEST_CASE("leases in Redis: a call in hand when the process is asked to end is given back") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  use_redis(charging, redis);
  auto& world = charging.world();
  world.set("consumer.shutdown_timeout=5s");
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  process->kill(SIGTERM);
  CHECK(process->wait(60s).code == 5);
  CHECK(holders(redis) == 0);
  CHECK(states(redis) == "1 RELEASED");
  api.release();
  charging.drain();
  CHECK(api.call_count() == 2);
  CHECK(states(redis) == "1 COMPLETED");
}

TEST_CASE("leases in Redis: one that could not be given back does not keep its message waiting") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.charge = false, .status = 503, .stall = true}
                            : ApiAnswer{};
  });
  ChargingWorld charging(1, api);
  use_redis(charging, redis);
  auto& world = charging.world();
  world.set("calls.lease_time=10m");
  world.produce_one("event", 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  REQUIRE(redis.text({"ACL", "SETUSER", "default", "-evalsha"}) == "OK");
  api.release();
  // By the next attempt; the first one is over.
  process->wait_for_output("EVENT redis_unreachable", 60s);
  REQUIRE(redis.text({"ACL", "SETUSER", "default", "+evalsha"}) == "OK");
  world.wait_until_all_processed();
  CHECK(api.call_count() == 2);
  CHECK(charging.finished() == 1);
  // A lease is released after its COMMIT.
  wait_until([&] { return holders(redis) == 0; }, 60s, "no lease to be held");
}

TEST_CASE("leases in Redis: one of before, in PostgreSQL, is not called beside") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.produce_one("event", 1, 0);
  {
    const auto process = charging.start();
    const ShowOnFailure show("killed", *process);
    wait_for_calls(api, 1);
    process->kill(SIGKILL);
    process->wait(20s);
  }
  REQUIRE(charging.leases() == 1);
  api.release();
  use_redis(charging, redis);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.in_register(0, "halt_code") == "lease_store_changed");
  stop_cleanly(*process);
  CHECK(api.call_count() == 1);
  world.execute("UPDATE pawl.leases SET lease_until = clock_timestamp()");
  world.execute("SELECT pawl.resolve_lease(scope_id, key, false, NULL) FROM pawl.leases");
  charging.drain();
  CHECK(api.call_count() == 2);
  CHECK(charging.finished() == 1);
  CHECK(charging.leases() == 0);
}

TEST_CASE("leases in Redis: a key of another type halts its message alone") {
  RedisServer redis;
  PaymentApi api(true, [](const ApiCall&) { return ApiAnswer{}; });
  ChargingWorld charging(2, api);
  use_redis(charging, redis);
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  charging.drain();
  const auto name = redis.ask({"KEYS", "*:history"}).items.at(0).text;
  redis.ask({"DEL", name});
  redis.ask({"SET", name, "somebody else's"});
  world.produce_one("event", 1, 0);
  world.produce_one("other", 1, 1);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(world.in_register(0, "halt_code") == "lease_unreadable");
  CHECK(world.in_register(0, "halt_parameters ->> 'redis_key'") == name);
  wait_for_calls(api, 2);
  redis.ask({"DEL", name});
  world.execute(
      "SELECT pawl.operator_change(consumer_id, topic, partition, NULL, 'running', 'resume', "
      "'test')"
      " FROM pawl.processed_kafka_offsets WHERE partition = 0");
  world.wait_until_all_processed();
  CHECK(charging.counts() == "2 1 0");
  CHECK(api.charges() == 2);
}

TEST_CASE("leases in Redis: after a failover to a replica that has none, nothing is paid twice") {
  RedisServer first;
  const auto port = std::to_string(first.address().port);
  RedisServer second({"replicaof=127.0.0.1 " + port, "repl-diskless-sync-delay=0"});
  RedisServer sentinel(
      {"sentinel=monitor leases 127.0.0.1 " + port + " 1",
       "sentinel=down-after-milliseconds leases 300", "sentinel=failover-timeout leases 2000"},
      "sentinel");
  wait_until(
      [&] {
        return second.text({"INFO", "replication"}).find("master_link_status:up") !=
                   std::string::npos &&
               sentinel.text({"INFO", "sentinel"}).find("slaves=1") != std::string::npos;
      },
      60s, "a replica that Sentinel knows");
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  use_redis(charging,
            {fmt::format("sentinels=[\"{}\"]", sentinel.address().text()), "master=leases"});
  charging.use("charge", "concurrency = 8\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  for (int i = 0; i < 8; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 8);
  first.stop();
  wait_until([&] { return is_master(second); }, 120s, "the failover");
  // As if nothing of it had come so far.
  second.ask({"FLUSHALL"});
  world.wait_until_all_processed();
  CHECK(api.charges() == 8);
  CHECK(charging.counts() == "8 0 0");
  CHECK(charging.stored() == "8 8");
}
