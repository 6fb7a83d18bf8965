// Leased handlers of the configuration: one HTTP request for each message.
#include <algorithm>
#include <atomic>
#include <fstream>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// `more`: further options of the request; `handler`: of the handler.
void use_http(ChargingWorld& charging, const PaymentApi& api, const std::string& more = "",
              const std::string& handler = "") {
  charging.world().use_handler(fmt::format(
      R"(http = {{ url = "{}/charges/{{/account}}?of={{header:event-id}}", headers = {{ Event-Id = "{{header:event-id}}" }}, json = {{ event = "{{header:event-id}}", amount = "{{/amount}}" }}{} }}
concurrency = 8
order_by = "{{header:event-id}}"
on_failure = "dead-letter"
{})",
      api.url(), more.empty() ? "" : ", " + more, handler));
}

std::string letter_of(const PaymentsWorld& world, const std::string& event) {
  return world.value(fmt::format(
      "SELECT coalesce((SELECT error FROM pawl.dead_letters WHERE idempotency_key = '{}'), 'none')",
      event));
}

}  // namespace

TEST_CASE("a request is what the configuration says, and its answer is the response") {
  PaymentApi api(false);
  ChargingWorld charging(1, api);
  use_http(charging, api);
  auto& world = charging.world();
  world.produce_one("event 1/2", 17, 0);
  for (int i = 0; i < 100; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.drain();
  const auto calls = api.calls();
  REQUIRE(calls.size() == 101);
  const auto first = std::ranges::find_if(
      calls, [](const ApiCall& call) { return call.headers.at("event-id") == "event 1/2"; });
  REQUIRE(first != calls.end());
  CHECK(first->method == "POST");
  CHECK(first->target.starts_with("/charges/acc-"));
  CHECK(first->target.ends_with("?of=event%201%2F2"));
  CHECK(first->headers.at("content-type") == "application/json");
  CHECK(first->body == R"({"amount":17,"event":"event 1/2"})");
  CHECK(first->key().size() == 64);
  CHECK(charging.stored() == "101 101");
  // They are kept open.
  CHECK(api.connections() <= 8);
}

TEST_CASE("what becomes of a message whose request fails") {
  struct Row {
    std::string event;
    ApiAnswer first;
    std::size_t calls;
    std::string letter;
  };
  const std::vector<Row> rows{
      {"refused", {.charge = false, .status = 422}, 1, "HTTP status 422"},
      {"moved",
       {.charge = false, .status = 307, .headers = "Location: /elsewhere\r\n"},
       1,
       "HTTP status 307"},
      {"busy", {.charge = false, .status = 503, .headers = "Retry-After: 1\r\n"}, 2, "none"},
      {"too many", {.charge = false, .status = 429, .headers = "Retry-After: 1\r\n"}, 2, "none"},
      {"in hand", {.status = 409}, 2, "none"},
      {"broken", {.status = 500}, 2, "none"},
      {"cut", {.cut = true}, 2, "none"},
      {"late", {.delay = 3s}, 2, "none"},
  };
  PaymentApi api(true, [&](const ApiCall& call) {
    for (const auto& row : rows) {
      if (call.headers.at("event-id") == row.event && call.number == 1)
        return row.first;
    }
    return ApiAnswer{};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, R"(timeout = "1s")");
  auto& world = charging.world();
  for (const auto& row : rows)
    world.produce_one(row.event, 1, 0);
  charging.drain();
  std::map<std::string, std::size_t> calls;
  for (const auto& call : api.calls())
    ++calls[call.headers.at("event-id")];
  for (const auto& row : rows) {
    INFO(row.event);
    CHECK(calls[row.event] == row.calls);
    CHECK_THAT(letter_of(world, row.event), ContainsSubstring(row.letter));
  }
  for (const auto& [key, charges] : api.charges_by_key())
    CHECK(charges == 1);
  CHECK(charging.counts() == "6 0 2");
}

TEST_CASE("messages wait for an endpoint that cannot be connected, and no attempt counts") {
  std::uint16_t port = 0;
  {
    const PaymentApi gone(false);
    port = static_cast<std::uint16_t>(gone.port());
  }
  PaymentApi unused(false);
  ChargingWorld charging(1, unused);
  auto& world = charging.world();
  // One failed attempt would be the last, and an unknown one would halt.
  world.use_handler(
      fmt::format("http = {{ url = \"http://127.0.0.1:{}/secret\" }}\non_unknown = "
                  "\"halt\"\non_failure = \"dead-letter\"\nmax_attempts = 1",
                  port));
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT remote_service_unreachable", 60s);
  CHECK_THAT(process->output(), !ContainsSubstring("/secret"));
  // As `pawl status` shows it: all behind the first wait as well.
  const auto waiting = [&](const std::string& condition) {
    return world.number(
        "SELECT count(*) FROM pawl.process_conditions p, jsonb_to_recordset(p.conditions)"
        " AS c (kind text, subject text, messages bigint, cause text) WHERE " +
        condition);
  };
  testing::wait_until(
      [&] {
        return waiting(fmt::format("c.kind = 'remote_service_unreachable' AND c.subject = "
                                   "'http://127.0.0.1:{}' AND c.messages = 3 AND c.cause LIKE "
                                   "'%no request was sent%'",
                                   port)) == 1;
      },
      60s, "the condition to be stored");
  CHECK(world.number("SELECT sum(attempts) FROM pawl.processed_kafka_offsets") == 0);
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{}; }, port);
  process->wait_for_output("EVENT remote_service_reachable", 60s);
  world.wait_for_stored(0, 2);
  CHECK(charging.counts() == "3 0 0");
  CHECK(api.call_count() == 3);
  testing::wait_until([&] { return waiting("true") == 0; }, 60s, "the condition to be removed");
}

TEST_CASE("a status of outage makes all messages wait, and no attempt counts") {
  std::atomic<bool> serves{false};
  PaymentApi api(false, [&](const ApiCall&) {
    return serves ? ApiAnswer{} : ApiAnswer{.charge = false, .status = 503};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, R"(not_done = "425,429,503", outage = "503")", "max_attempts = 1");
  auto& world = charging.world();
  for (int i = 0; i < 10; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  process->wait_for_output("EVENT remote_service_unreachable", 60s);
  CHECK_THAT(process->output(), ContainsSubstring("HTTP status 503"));
  // Those that began together, and one call after the other.
  const auto calls = api.call_count();
  wait_for_calls(api, calls + 2);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  serves = true;
  process->wait_for_output("EVENT remote_service_reachable", 60s);
  world.wait_for_stored(0, 9);
  CHECK(charging.counts() == "10 0 0");
}

TEST_CASE("a message that alone meets a status of outage is at fault once retry_for is over") {
  PaymentApi api(false, [](const ApiCall& call) {
    return call.event() == "poison" ? ApiAnswer{.charge = false, .status = 503} : ApiAnswer{};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, R"(not_done = "425,429,503", outage = "503")");
  auto& world = charging.world();
  world.produce_one("poison", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_for_calls(api, 2);
  for (int i = 0; i < 4; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  world.wait_for_stored(0, 4);
  CHECK(charging.counts() == "4 0 1");
  CHECK_THAT(letter_of(world, "poison"), ContainsSubstring("HTTP status 503"));
}

TEST_CASE("a request that was sent and is unknown halts where only an operator may say") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.cut = true}; });
  ChargingWorld charging(1, api);
  use_http(charging, api, "", "on_unknown = \"halt\"");
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_for_state(0, "halted");
  CHECK(api.call_count() == 1);
  CHECK(api.charges() == 1);
}

TEST_CASE("a token is read again when its file has changed, and nothing of a request is logged") {
  const TempDir folder;
  const auto write = [&](const std::string& token) {
    std::ofstream(folder.path() / "token") << token << '\n';
  };
  write("token-one");
  PaymentApi api(false, [](const ApiCall& call) {
    return ApiAnswer{.status = call.headers.at("event-id") == "poison" ? 400 : 200,
                     .body = R"({"charge":"answer-of-the-api"})"};
  });
  ChargingWorld charging(1, api);
  auto& world = charging.world();
  world.use_handler(fmt::format(
      R"(http = {{ url = "{}/", headers = {{ Authorization = "Bearer ${{file:{}/token}}", Event-Id = "{{header:event-id}}" }}, body = "pay {{/amount}} to {{/account}}" }}
on_failure = "dead-letter")",
      api.url(), folder.path().string()));
  const auto process = charging.start({"--events"});
  const ShowOnFailure show("consumer", *process);
  world.produce_one("event-1", 1, 0);
  world.wait_until_all_processed();
  write("token-two");
  world.produce_one("poison", 1, 0);
  world.wait_until_all_processed();
  const auto calls = api.calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].headers.at("authorization") == "Bearer token-one");
  CHECK(calls[1].headers.at("authorization") == "Bearer token-two");
  CHECK_THAT(calls[0].body, StartsWith("pay 1 to acc-"));
  for (const auto* secret : {"token-one", "token-two", "pay 1", "answer-of-the-api"})
    CHECK_THAT(process->output(), !ContainsSubstring(secret));
}

TEST_CASE("of an answer as much is stored as idempotency.max_response allows") {
  PaymentApi api(false, [](const ApiCall&) { return ApiAnswer{.body = std::string(100000, 'x')}; });
  ChargingWorld charging(1, api);
  use_http(charging, api, "", "max_response = \"1KiB\"");
  auto& world = charging.world();
  world.produce_one("event", 1, 0);
  charging.drain();
  CHECK(world.number("SELECT octet_length(response) FROM pawl.idempotency_keys") == 1024);
}

TEST_CASE(
    "a host gets no more requests at a time than max_in_flight, and others do not wait for that") {
  PaymentApi api(false, [](const ApiCall& call) {
    return ApiAnswer{.stall = call.headers.contains("event-id")};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, "max_in_flight = 3",
           fmt::format(R"(when = "{{header:event-id}} != \"other\""
[[handler]]
topics = ["{}"]
http = {{ url = "{}/other" }})",
                       charging.world().topic(), api.url()));
  auto& world = charging.world();
  for (int i = 0; i < 8; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  world.produce_one("other", 1, 0);
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return api.call_count() == 4; }, 60s, "three calls, and the other");
  wait_until([&] { return charging.stored() == "1 1"; }, 60s, "the other to be finished");
  // No lease is taken for what waits.
  CHECK(charging.leases() == 3);
  api.release();
  world.wait_until_all_processed();
  CHECK(api.most_at_once() <= 4);
}
