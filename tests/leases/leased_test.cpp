// Handlers whose effect is outside of the database: called under a lease of the message's key.
#include <signal.h>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// How often the API was called for this event.
int calls_for(const PaymentApi& api, const std::string& event) {
  int count = 0;
  for (const auto& call : api.calls())
    count += call.event() == event ? 1 : 0;
  return count;
}

/// What a new owner does first.
void pass_to_new_owner(const PaymentsWorld& world) {
  world.execute(
      "SELECT pawl.raise_fence(consumer_id, topic, partition, owner_epoch + 1, false) FROM "
      "pawl.processed_kafka_offsets");
  world.execute("UPDATE pawl.processed_kafka_offsets SET owner_epoch = owner_epoch + 1");
}

}  // namespace

TEST_CASE("each message is called once, under a key of its own, and the answer is stored") {
  PaymentApi api(false);
  ChargingWorld charging(2, api);
  auto& world = charging.world();
  world.produce(200);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  const auto keys = world.number("SELECT count(*) FROM pawl.idempotency_keys");
  CHECK(static_cast<std::int64_t>(api.charges_by_key().size()) == keys);
  CHECK(api.charges() == keys);
  CHECK(charging.stored() == fmt::format("{} {}", keys, keys));
  CHECK(charging.leases() == 0);
  for (const auto& call : api.calls())
    CHECK(call.key().size() == 64);
}

TEST_CASE("calls of one partition run side by side, up to the handler's concurrency") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  charging.use("charge", "concurrency = 40\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  // Fewer sessions than calls: none is held while a call runs.
  world.set("consumer.concurrency=2");
  for (int i = 0; i < 50; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return api.in_hand() == 40; }, 60s, "40 calls at once");
  CHECK(charging.leases() == 40);
  api.release();
  world.wait_until_all_processed();
  CHECK(api.most_at_once() == 40);
  CHECK(api.charges() == 50);
}

TEST_CASE("a process calls no more at a time than calls.max_in_flight") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  charging.use("charge", "concurrency = 40\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  world.set("calls.max_in_flight=5");
  for (int i = 0; i < 20; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return api.in_hand() == 5; }, 60s, "5 calls at once");
  // No lease is held for what waits for a call.
  CHECK(charging.leases() == 5);
  api.release();
  world.wait_until_all_processed();
  CHECK(api.most_at_once() == 5);
}

TEST_CASE("what a failed call means") {
  struct Row {
    std::string event;
    ApiAnswer first;
    int calls;
    bool dead;
  };
  // Of those that were charged the API knows the repetition.
  const std::vector<Row> rows{
      {"refused", {.charge = false, .status = 422}, 1, true},
      {"busy", {.charge = false, .status = 503}, 2, false},
      {"broken before", {.charge = false, .status = 500}, 2, false},
      {"broken behind", {.status = 500}, 2, false},
      {"cut off", {.cut = true}, 2, false},
  };
  PaymentApi api(true, [&](const ApiCall& call) {
    for (const auto& row : rows) {
      if (call.event() == row.event && call.number == 1)
        return row.first;
    }
    return ApiAnswer{};
  });
  ChargingWorld charging(1, api);
  charging.use("charge",
               "concurrency = 8\norder_by = \"{header:event-id}\"\non_failure = \"dead-letter\"");
  auto& world = charging.world();
  for (const auto& row : rows)
    world.produce_one(row.event, 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  for (const auto& row : rows) {
    INFO(row.event);
    CHECK(calls_for(api, row.event) == row.calls);
    CHECK(world.number(fmt::format(
              "SELECT count(*) FROM pawl.dead_letters WHERE idempotency_key = '{}'", row.event)) ==
          (row.dead ? 1 : 0));
  }
  for (const auto& [key, charges] : api.charges_by_key())
    CHECK(charges == 1);
  CHECK(charging.counts() == "4 0 1");
}

TEST_CASE("after a process died in a call the next one calls under the same key") {
  const std::string on_unknown = GENERATE("call", "reconcile", "halt");
  const bool dedupes = on_unknown == "call";
  CAPTURE(on_unknown);
  PaymentApi api(dedupes, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  charging.use("charge", "on_unknown = \"" + on_unknown + "\"");
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.produce_one("event", 1, 0);
  world.produce_one("another", 1, 0);
  {
    const auto process = charging.start();
    const ShowOnFailure show("killed", *process);
    wait_for_calls(api, 1);
    // One process has one name, in all tables.
    CHECK(world.number("SELECT count(*) FROM pawl.leases JOIN pawl.processed_kafka_offsets "
                       "USING (owner)") == 1);
    process->kill(SIGKILL);
    process->wait(20s);
  }
  CHECK(charging.leases() == 1);
  api.release();
  const auto process = charging.start();
  const ShowOnFailure show("next", *process);
  if (on_unknown == "halt") {
    world.wait_for_state(0, "halted");
    CHECK(world.in_register(0, "halt_kind") == "unknown-outcome");
    CHECK(world.in_register(0, "halt_parameters ->> 'idempotency_key'") == "event");
    process->wait_for_output("pawl calls resolve --config /", 60s);
    process->wait_for_output(" --not-done -- event", 60s);
    CHECK(api.call_count() == 1);
    return;
  }
  world.wait_until_all_processed();
  CHECK(api.charges() == 2);
  CHECK(calls_for(api, "event") == (on_unknown == "call" ? 2 : 1));
  CHECK(charging.stored() == "2 2");
  CHECK(charging.leases() == 0);
}

TEST_CASE("of two messages with one key the second waits for the first, and gets its response") {
  PaymentApi api(false,
                 [](const ApiCall& call) { return ApiAnswer{.stall = call.event() == "twice"}; });
  ChargingWorld charging(2, api);
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
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.out_of_order_completions"
                   " WHERE outcome IS NOT NULL") == 20;
      },
      60s, "the others to be finished");
  CHECK(world.processed() == 0);
  CHECK(calls_for(api, "twice") == 1);
  api.release();
  world.wait_until_all_processed();
  CHECK(calls_for(api, "twice") == 1);
  CHECK(charging.finished() == 22);
  const auto response = R"(RESPONSE {"charge":")";
  CHECK(occurrences(*first, response) + occurrences(*second, response) == 1);
}

TEST_CASE("what a process did that woke up behind its lease is not recorded, and that is said") {
  const bool returned = GENERATE(true, false);
  CAPTURE(returned);
  PaymentApi api(true, [&](const ApiCall& call) {
    return ApiAnswer{.stall = call.number == 1, .cut = call.number == 1 && !returned};
  });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
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
  wait_until([&] { return api.in_hand() == 0; }, 60s, "the answer");
  frozen->kill(SIGCONT);
  frozen->wait_for_output("EVENT warning", 60s);
  frozen->wait_for_output("the lease of a call was lost before its outcome was recorded", 60s);
  wait_until([&] { return world.number("SELECT count(*) FROM pawl.lease_losses") == 1; }, 60s,
             "the loss to be recorded");
  CHECK(world.value("SELECT concat_ws(' ', key, returned) FROM pawl.lease_losses") ==
        (returned ? "event t" : "event f"));
  CHECK(charging.counts() == "1 0 0");
  CHECK(charging.stored() == "1 1");
  CHECK(charging.leases() == 0);
}

TEST_CASE("what fails when a response is recorded does not repeat the call") {
  PaymentApi api(false);
  ChargingWorld charging(1, api);
  charging.use("charge_record_fails", "concurrency = 4\norder_by = \"{header:event-id}\"");
  auto& world = charging.world();
  world.execute("CREATE TABLE refuses AS SELECT 1 AS one");
  world.produce_one("poison", 5, 0);
  world.produce_one("event", 7, 0);
  {
    const auto process = charging.start();
    const ShowOnFailure show("consumer", *process);
    world.wait_for_state(0, "halted");
    process->kill(SIGTERM);
    process->wait(30s);
  }
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
  CHECK(world.value("SELECT concat_ws(' ', key, done, owner IS NULL) FROM pawl.leases") ==
        "poison t t");
  world.execute("DELETE FROM refuses");
  charging.drain();
  CHECK(calls_for(api, "poison") == 1);
  CHECK(world.number("SELECT sum(amount) FROM ledger") == 12);
  CHECK(charging.stored() == "2 2");
  CHECK(charging.leases() == 0);
}

TEST_CASE("a call whose partition moves meanwhile is recorded, and the new owner finds that") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  pass_to_new_owner(world);
  api.release();
  world.wait_until_all_processed();
  CHECK(charging.counts() == "0 1 0");
  CHECK(api.call_count() == 1);
  CHECK(charging.stored() == "1 1");
}

TEST_CASE("a record in code that fails without its partition is no failure of the message") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  charging.use("charge_second_record_fails");
  auto& world = charging.world();
  // An attempt that counted would keep the message waiting.
  world.set("failures.retry_initial=1h");
  world.set("failures.retry_max=1h");
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  pass_to_new_owner(world);
  api.release();
  world.wait_until_all_processed();
  CHECK(charging.counts() == "1 0 0");
  CHECK(api.call_count() == 1);
  CHECK(charging.stored() == "1 1");
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
}

TEST_CASE("what a call brought survives a restart of PostgreSQL while it ran") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  PostgresServer server;
  ChargingWorld charging(1, api, &server);
  auto& world = charging.world();
  world.set("calls.lease_time=60s");
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.use("charge", "concurrency = 5\norder_by = \"{header:event-id}\"");
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 5);
  server.stop(StopMode::kImmediate);
  api.release();
  wait_until([&] { return api.in_hand() == 0; }, 60s, "the calls to end");
  server.start();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 5);
  CHECK(charging.stored() == "5 5");
  CHECK(charging.finished() == 5);
}

TEST_CASE("what a call brought does not keep its message from a partition's next owner") {
  PaymentApi api(false, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.charge = false, .hang = true} : ApiAnswer{.stall = true};
  });
  PostgresServer server;
  ChargingWorld charging(2, api, &server);
  auto& world = charging.world();
  world.set_kafka_options("assignor = \"range\"\n");
  world.execute("CREATE ROLE first LOGIN SUPERUSER");
  world.produce_one("event", 1, 1);
  {
    const auto killed = charging.start();
    wait_for_calls(api, 1);
    killed->kill(SIGKILL);
    killed->wait(30s);
  }
  // The message may have ended that process: it runs on the thread of its partition's worker.
  const auto first = charging.start({}, {}, world.url() + "?user=first");
  const ShowOnFailure show_first("first", *first);
  wait_for_calls(api, 2);
  // Leases are extended over a connection of their own, which stays.
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.leases"
                   " WHERE lease_until > started_at + interval '2500 milliseconds'") == 1;
      },
      60s, "the lease to be extended");
  world.execute("ALTER ROLE first NOLOGIN");
  world.execute("SELECT pg_terminate_backend(owner_pid) FROM pawl.processed_kafka_offsets");
  api.release();
  wait_until([&] { return api.in_hand() == 0; }, 60s, "the call to end");

  // The partitions move while their worker has no session to store anything.
  const auto second = charging.start();
  const ShowOnFailure show_second("second", *second);
  wait_until(
      [&] {
        return world.number("SELECT count(DISTINCT owner) FROM pawl.processed_kafka_offsets") == 2;
      },
      60s, "a partition to move");
  world.execute("ALTER ROLE first LOGIN");
  world.wait_until_all_processed();
  CHECK(api.call_count() == 2);
  CHECK(charging.stored() == "1 1");
  CHECK(charging.leases() == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.lease_losses") == 0);
}

TEST_CASE("a call in hand when the process is asked to end gets its time, and no more") {
  const bool in_time = GENERATE(true, false);
  CAPTURE(in_time);
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.set(in_time ? "consumer.shutdown_timeout=60s" : "consumer.shutdown_timeout=8s");
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 1);
  process->kill(SIGTERM);
  if (in_time) {
    process->wait_for_output("STOPPING", 60s);
    api.release();
    CHECK(process->wait(60s).code == 0);
    CHECK(charging.counts() == "1 0 0");
    CHECK(charging.leases() == 0);
    return;
  }
  CHECK(process->wait(60s).code == 5);
  // Given back: nobody waits for its end.
  CHECK(world.value("SELECT concat_ws(' ', owner IS NULL, unknown_since IS NOT NULL) FROM "
                    "pawl.leases") == "t t");
  api.release();
  charging.drain();
  CHECK(api.call_count() == 2);
  CHECK(api.charges() == 1);
  CHECK(charging.leases() == 0);
}

TEST_CASE("an error of another database is the call's, and no server's of ours") {
  PaymentApi api(false);
  ChargingWorld charging(1, api);
  charging.use("another_database", "on_failure = \"dead-letter\"\nmax_attempts = 2");
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  charging.drain();
  CHECK(world.value("SELECT concat_ws(' ', reason, attempts, error) FROM pawl.dead_letters") ==
        "error 2 deadlock detected");
  CHECK(world.value("SELECT concat_ws(' ', attempt, unknown_since IS NOT NULL) FROM pawl.leases") ==
        "2 t");
}

TEST_CASE("a call that does not heed its stop token is told of") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  ChargingWorld charging(1, api);
  charging.use("deaf", "timeout = \"500ms\"");
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("a call continues although its timeout has passed", 60s);
  // It keeps its key, and what it brings counts.
  CHECK(charging.leases() == 1);
  api.release();
  world.wait_until_all_processed();
  CHECK(api.call_count() == 1);
  CHECK(charging.stored() == "1 1");
}
