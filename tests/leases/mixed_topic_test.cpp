// Calls beside other handlers of one topic. Without `concurrency` the topic completes in the log's
// order, calls included; other handlers stay grouped between two calls.
#include <fmt/format.h>

#include <csignal>

#include "batch_world.hpp"
#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// A topic with a handler that calls the API for messages of the type "call", and one that is
/// `other` for all else. One worker: what it does for one partition, it could do for each.
class MixedTopic {
 public:
  MixedTopic(int partitions, PaymentApi& api, const std::string& other,
             const std::string& of_call = "")
      : charging(partitions, api) {
    auto& world = charging.world();
    world.use_handler(fmt::format(R"toml(name = "call"
scope = "calls"
when = '{{header:type}} == "call"'
http = {{ url = "{}/charges", headers = {{ Event-Id = "{{header:event-id}}" }} }}
{}
[[handler]]
name = "other"
topics = ["{}"]
{})toml",
                                  api.url(), of_call, world.topic(), other));
    world.set("consumer.workers=1");
  }

  /// A payment to acc-1. `key`: its record key; empty: its own.
  void send(const std::string& event, const std::string& type, int partition = 0,
            const std::string& key = "") {
    Record record;
    record.key = key.empty() ? event : key;
    record.value = R"({"account":"acc-1","amount":1})";
    record.headers = {{"event-id", event}, {"type", type}};
    record.partition = partition;
    charging.world().produce_record(record);
  }
  void send_many(const std::string& prefix, int count) {
    for (int i = 0; i < count; ++i)
      send(fmt::format("{}-{}", prefix, i), "sql");
  }
  /// Once a call is with the API, another partition's message is applied by the same worker. It has
  /// given the call's partition its turn by then.
  void wait_until_worker_went_on(const PaymentApi& api) {
    wait_for_calls(api, 1);
    for (int i = 0; i < 3; ++i) {
      send(fmt::format("elsewhere-{}", i), "sql", 1);
      charging.world().wait_for_stored(1, i);
    }
  }
  [[nodiscard]] std::int64_t applied() {
    return charging.world().number(
        "SELECT count(*) FROM ledger WHERE event_id NOT LIKE 'elsewhere%'");
  }

  ChargingWorld charging;
};

std::string statuses(const PaymentsWorld& world) {
  return world.value(
      "SELECT coalesce(string_agg(idempotency_key || ' ' || status, ', ' ORDER BY kafka_offset), "
      "'none') FROM pawl.dead_letters");
}

ApiAnswer refusal() {
  return {.charge = false, .status = 400, .stall = true};
}

}  // namespace

TEST_CASE("messages behind a call wait for it, whoever handles them, and other partitions go on") {
  PaymentApi api(true, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  MixedTopic topic(2, api, pawl::test::kFlightSql);
  auto& world = topic.charging.world();
  topic.send("call-1", "call");
  topic.send_many("sql", 20);
  topic.send("call-2", "call");
  const auto process = topic.charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  topic.wait_until_worker_went_on(api);
  CHECK(topic.applied() == 0);
  CHECK(api.call_count() == 1);
  CHECK(world.stored(0).value_or(-1) == -1);
  api.release();
  world.wait_until_all_processed();
  CHECK(topic.applied() == 20);
  CHECK(api.call_count() == 2);
  CHECK(api.most_at_once() == 1);
  CHECK(longest_flight(*process) > 1);
  CHECK(world.number("SELECT count(*) FROM pawl.out_of_order_completions") == 0);
}

TEST_CASE("a partition that halts at a call has applied nothing behind it") {
  PaymentApi api(true, [](const ApiCall&) { return refusal(); });
  MixedTopic topic(2, api, pawl::test::kFlightSql, "on_failure = \"halt\"");
  auto& world = topic.charging.world();
  topic.send("before", "sql");
  topic.send("call", "call");
  topic.send_many("behind", 5);
  const auto process = topic.charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  topic.wait_until_worker_went_on(api);
  api.release();
  world.wait_for_state(0, "halted");
  CHECK(topic.applied() == 1);
  CHECK(world.stored(0) == 0);
}

TEST_CASE("what a call parks holds back its record key, whatever its handler is ordered by") {
  PaymentApi api(true, [](const ApiCall&) { return refusal(); });
  const auto policy = GENERATE(as<std::string>{}, "park", "retry-later");
  CAPTURE(policy);
  MixedTopic topic(2, api, fmt::format("on_failure = \"{}\"\n{}", policy, pawl::test::kFlightSql),
                   fmt::format("order_by = \"{{/amount}}\"\non_failure = \"{}\"", policy));
  auto& world = topic.charging.world();
  topic.send("call", "call", 0, "K");
  topic.send("later", "sql", 0, "K");
  topic.send("called later", "call", 0, "K");
  const auto process = topic.charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  topic.wait_until_worker_went_on(api);
  api.release();
  world.wait_for_stored(0, 2);
  CHECK_THAT(statuses(world), StartsWith("call dead, later parked, called later parked"));
  CHECK(topic.applied() == 0);
  // Each dead letter of "retry-later" is called again by itself.
  if (policy == "park")
    CHECK(api.call_count() == 1);
}

TEST_CASE("a call that waits for its next attempt holds back what is behind it") {
  // The second attempt comes when this test has seen that nothing overtakes the first.
  PaymentApi api(true, [](const ApiCall& call) {
    if (call.event() == "call" && call.number == 1)
      return ApiAnswer{.charge = false, .status = 503, .headers = "Retry-After: 1\r\n"};
    return ApiAnswer{.stall = true};
  });
  MixedTopic topic(2, api, pawl::test::kFlightSql);
  auto& world = topic.charging.world();
  topic.send("call", "call");
  topic.send_many("behind", 5);
  const auto process = topic.charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 2);
  topic.wait_until_worker_went_on(api);
  CHECK(topic.applied() == 0);
  api.release();
  world.wait_until_all_processed();
  CHECK(topic.applied() == 5);
}

TEST_CASE("batches stay batches beside a handler that calls") {
  PaymentApi api(true);
  MixedTopic topic(1, api, pawl::test::kBatchSql);
  auto& world = topic.charging.world();
  pawl::test::note_order(world);
  topic.send_many("first", 150);
  topic.send("call-1", "call");
  topic.send("call-2", "call");
  topic.send_many("second", 150);
  topic.charging.drain();
  CHECK(topic.applied() == 300);
  CHECK(api.call_count() == 2);
  CHECK(pawl::test::transactions(world) < 30);
  CHECK(pawl::test::out_of_order(world) == 0);
}

TEST_CASE(
    "a process killed while a call runs has begun nothing behind it, and neither has the next") {
  PaymentApi api(true, [](const ApiCall& call) { return ApiAnswer{.stall = call.number == 1}; });
  MixedTopic topic(2, api, pawl::test::kFlightSql);
  auto& world = topic.charging.world();
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set("failures.max_crashes=100");
  pawl::test::note_order(world);
  topic.send("before", "sql");
  topic.send("call", "call");
  topic.send_many("behind", 20);
  const auto process = topic.charging.start({"--events"});
  {
    const ShowOnFailure show("consumer", *process);
    topic.wait_until_worker_went_on(api);
    process->kill(SIGKILL);
    (void)process->wait(60s);
  }
  CHECK(topic.applied() == 1);
  topic.charging.drain();
  CHECK(topic.applied() == 21);
  CHECK(pawl::test::out_of_order(world) == 0);
  CHECK(world.number("SELECT count(*) FROM pawl.leases") == 0);
  CHECK(world.number("SELECT kafka_offset FROM pawl.idempotency_keys WHERE key = 'call'") == 1);
}

TEST_CASE("a partition that is let go of while a call runs ends behind the call") {
  PaymentApi api(true, [](const ApiCall&) { return ApiAnswer{.stall = true}; });
  MixedTopic topic(2, api, pawl::test::kFlightSql);
  auto& world = topic.charging.world();
  topic.send("call", "call");
  topic.send_many("behind", 5);
  const auto process = topic.charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  topic.wait_until_worker_went_on(api);
  process->kill(SIGTERM);
  // The other partition needs no waiting for: by then this one is to be let go of as well.
  wait_until([&] { return world.in_register(1, "released") == "t"; }, 60s,
             "the idle partition to be released");
  api.release();
  REQUIRE(process->wait(60s).success());
  // The planned stop waits for the call, and begins nothing more.
  CHECK(world.stored(0) == 0);
  CHECK(topic.applied() == 0);
  CHECK(world.in_register(0, "released") == "t");
  topic.charging.drain();
  CHECK(topic.applied() == 5);
  CHECK(api.charges() == 1);
}

// Fails where the session is left as it was found: what the call brought is never stored.
TEST_CASE("what a call brought is stored where an earlier handler left settings in the session") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{}; });
  MixedTopic mixed(1, api,
                   "concurrency = 2\n"
                   "sql = \"SELECT set_config('search_path', 'elsewhere', false)\"\n");
  auto& world = mixed.charging.world();
  // One session, so that no other stores it.
  world.set("consumer.concurrency=1");
  const auto process = mixed.charging.start();
  const ShowOnFailure show("consumer", *process);
  mixed.send("leaves", "sql");
  world.wait_for_stored(0, 0);
  mixed.send("calls", "call");
  world.wait_for_stored(0, 1);
  CHECK(api.call_count() == 1);
  CHECK(statuses(world) == "none");
  CHECK(occurrences(*process, "settings of its session") == 1);
  stop_cleanly(*process);
}
