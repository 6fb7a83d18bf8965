// The common lock in Redis, compared with a lease: docs/external-calls.md, "Comparison with a Redis
// lock".
#include <signal.h>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "redis_server.hpp"

TEST_CASE(
    "a process that stands still for longer than its lock pays twice, and with a lease once") {
  RedisServer redis;
  SECTION("SET NX EX") {
    PaymentApi api(false);
    const std::vector<std::string> arguments{redis.address().text(), std::to_string(api.port()),
                                             "payment-1", "2"};
    auto freezing = arguments;
    freezing.emplace_back("freeze");
    ChildProcess frozen(PAWL_SETNX_CONSUMER, freezing);
    wait_until_stopped(frozen, 60s);
    // The same message, after a rebalance.
    ChildProcess next(PAWL_SETNX_CONSUMER, arguments);
    CHECK(next.wait(60s).code == 0);
    frozen.kill(SIGCONT);
    CHECK(frozen.wait(60s).code == 0);
    CHECK(api.charges() == 2);
  }
  SECTION("a lease") {
    const std::string store = GENERATE("postgres", "redis");
    CAPTURE(store);
    PaymentApi api(false);
    ChargingWorld charging(1, api);
    auto& world = charging.world();
    world.set("calls.lease_store=" + store);
    if (store == "redis")
      world.set("redis.address=" + redis.address().text());
    if (store == "redis")
      world.set("redis.timeout=500ms");
    world.set_kafka_options("session_timeout = \"1s\"");
    world.produce_one("payment-1", 1, 0);
    const auto frozen = charging.start({"--events", "--freeze", "lease_acquired:1"});
    const ShowOnFailure show("frozen", *frozen);
    wait_until_stopped(*frozen, 60s);
    const auto next = charging.start();
    const ShowOnFailure show_next("next", *next);
    world.wait_until_all_processed();
    frozen->kill(SIGCONT);
    frozen->wait_for_output("EVENT call_finished", 60s);
    stop_cleanly(*frozen);
    stop_cleanly(*next);
    CHECK(api.charges() == 1);
  }
}
