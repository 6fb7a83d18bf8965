// HTTP handlers and the connections that they keep open: a response belongs to the request that was
// sent on its connection, or to none.
#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kWrong =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n"
    "{\"event\":\"WRONG!\"}";

std::string own_body(const ApiCall& call) {
  return R"({"event":")" + call.event() + "\"}";
}

ApiAnswer own_answer(const ApiCall& call) {
  return {.body = own_body(call)};
}

/// One request after the other, each with its event id, on one connection while it is kept.
void use_http(ChargingWorld& charging, const PaymentApi& api, const std::string& more = "") {
  charging.world().use_handler(fmt::format(
      R"(http = {{ url = "{}/charges", headers = {{ Event-Id = "{{header:event-id}}" }}{} }}
on_failure = "dead-letter"
max_attempts = 1)",
      api.url(), more.empty() ? "" : ", " + more));
}

/// Keys with a response, and of them those with their own.
std::string recorded(const PaymentsWorld& world) {
  return world.value(
      "SELECT concat_ws(' ', count(*), count(*) FILTER (WHERE convert_from(response, 'UTF8')"
      " = '{\"event\":\"' || key || '\"}')) FROM pawl.idempotency_keys");
}

}  // namespace

TEST_CASE("a response that comes while the connection is idle is not the next message's") {
  PaymentApi api(true, own_answer);
  ChargingWorld charging(1, api);
  use_http(charging, api);
  auto& world = charging.world();
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  for (int i = 0; i < 5; ++i) {
    world.produce_one(fmt::format("event-{}", i), 1, 0);
    world.wait_until_all_processed();
    api.send_to_all(kWrong);
  }
  CHECK(recorded(world) == "5 5");
  CHECK(api.call_count() == 5);
  CHECK(api.connections() == 5);
}

TEST_CASE("an error is never recorded as success because an earlier response was one too many") {
  PaymentApi api(true, [](const ApiCall& call) {
    return call.event() == "event-3" ? ApiAnswer{.charge = false, .status = 500} : own_answer(call);
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, R"(retry = "408", permanent = "500")");
  auto& world = charging.world();
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  for (int i = 1; i <= 4; ++i) {
    world.produce_one(fmt::format("event-{}", i), 1, 0);
    world.wait_until_all_processed();
    if (i == 1)
      api.send_to_all(kWrong);
  }
  CHECK(recorded(world) == "3 3");
  CHECK(world.value("SELECT idempotency_key || ': ' || error FROM pawl.dead_letters") ==
        "event-3: HTTP status 500");
}

TEST_CASE("a refusal that a server sends when it closes an idle connection is no message's") {
  PaymentApi api(true, own_answer);
  ChargingWorld charging(1, api);
  use_http(charging, api);
  auto& world = charging.world();
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.produce_one("event-1", 1, 0);
  world.wait_until_all_processed();
  api.send_to_all("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  api.close_all();
  world.produce_one("event-2", 1, 0);
  world.wait_until_all_processed();
  CHECK(recorded(world) == "2 2");
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
  CHECK(api.call_count() == 2);
}

TEST_CASE("a connection is kept after a clean response, and after no other") {
  struct Row {
    std::string what;
    std::string head;
    std::string tail;  ///< behind the own body
    bool kept;
  };
  // The bodies are of one length.
  const auto row = GENERATE(
      Row{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n", "", true},
      Row{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n", "\r\n0\r\n\r\n",
          true},
      Row{"a length and a byte", "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n", "x", false},
      Row{"a length and a response", "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n", kWrong,
          false},
      Row{"chunks and a byte", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n",
          "\r\n0\r\n\r\nx", false},
      Row{"chunks and a response", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n",
          std::string("\r\n0\r\n\r\n") + kWrong, false},
      Row{"the wish to close it",
          "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 19\r\n\r\n", "", false});
  CAPTURE(row.what);
  PaymentApi api(true, [&](const ApiCall& call) {
    return ApiAnswer{.raw = row.head + own_body(call) + row.tail};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api);
  auto& world = charging.world();
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.drain();
  CHECK(recorded(world) == "5 5");
  CHECK(api.call_count() == 5);
  CHECK(api.connections() == (row.kept ? 1 : 5));
}

TEST_CASE("a connection is not kept when bytes follow a response without a body") {
  PaymentApi api(true, [](const ApiCall&) {
    return ApiAnswer{.raw = std::string("HTTP/1.1 204 Done\r\n\r\n") + kWrong};
  });
  ChargingWorld charging(1, api);
  use_http(charging, api);
  auto& world = charging.world();
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.drain();
  CHECK(world.value("SELECT string_agg(convert_from(response, 'UTF8'), ',') FROM "
                    "pawl.idempotency_keys") == ",,");
  CHECK(api.connections() == 3);
}

TEST_CASE("with keep_alive = false each request has a connection of its own") {
  PaymentApi api(true, own_answer);
  ChargingWorld charging(1, api);
  use_http(charging, api, "keep_alive = false");
  auto& world = charging.world();
  for (int i = 0; i < 3; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.drain();
  CHECK(recorded(world) == "3 3");
  CHECK(api.connections() == 3);
  for (const auto& call : api.calls())
    CHECK(call.headers.at("connection") == "close");
}

TEST_CASE("a response that begins before the server has the request is not the request's") {
  PaymentApi api(true, [](const ApiCall& call) {
    auto answer = own_answer(call);
    if (call.event() == "small")
      answer.early_next = R"({"event":"WRONG!"})";
    return answer;
  });
  ChargingWorld charging(1, api);
  use_http(charging, api, R"(body = "{value}")");
  auto& world = charging.world();
  const auto process = charging.start();
  const ShowOnFailure show("consumer", *process);
  world.produce_one("small", 1, 0);
  world.wait_until_all_processed();
  // Larger than the kernels of both sides hold of it.
  world.produce_record({.key = "k",
                        .value = "\"" + std::string(900'000, 'x') + "\"",
                        .headers = {{"event-id", "large"}},
                        .partition = 0});
  world.wait_until_processed(2);
  CHECK(api.events() == std::vector<std::string>{"request small", "early"});
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys") == 1);
  CHECK_THAT(world.value("SELECT error FROM pawl.dead_letters"),
             ContainsSubstring("a response started before the server had received the request"));
}

TEST_CASE("a call that has lost its lease has closed its connection before another one begins") {
  PaymentApi api(true, [](const ApiCall& call) {
    return call.number == 1 ? ApiAnswer{.hang = true} : own_answer(call);
  });
  ChargingWorld charging(2, api);
  use_http(charging, api);
  auto& world = charging.world();
  PostgresProxy one_proxy(world.url());
  PostgresProxy other_proxy(world.url());
  const auto one = charging.start({"--events"}, {}, one_proxy.url());
  const auto other = charging.start({"--events"}, {}, other_proxy.url());
  const ShowOnFailure show_one("one", *one);
  const ShowOnFailure show_other("other", *other);
  charging.wait_for_owners(2);
  world.produce_one("event", 1, 0);
  wait_for_calls(api, 1);
  // The same key, at whoever has the other partition.
  world.produce_one("event", 1, 1);
  auto& proxy =
      one->output().find("EVENT lease_acquired") != std::string::npos ? one_proxy : other_proxy;
  proxy.refuse_connections(true);
  proxy.cut_all();
  wait_for_calls(api, 2);
  CHECK(api.events() == std::vector<std::string>{"request event", "gone event", "request event"});
  proxy.refuse_connections(false);
  world.wait_until_all_processed();
  CHECK(recorded(world) == "1 1");
}
