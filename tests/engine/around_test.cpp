// Functions around each call of a handler in C++: what they see, and what they cannot do.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "batch_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

constexpr const char* kPayment = R"({"account":"acc-1","amount":5})";

/// The test consumer has two around each call, "outer" and "inner".
std::vector<std::string> drain(PaymentsWorld& world) {
  ProgramOptions options;
  options.arguments = {"--around", "--drain"};
  options.extra_config =
      "[failures]\non_failure = \"dead-letter\"\nmax_attempts = 1\nretry_initial = \"5ms\"\n";
  auto process = world.start(options);
  const auto status = process->wait(90s);
  INFO(process->output());
  REQUIRE(status.code == 0);
  std::vector<std::string> lines;
  std::istringstream output(process->output());
  for (std::string line; std::getline(output, line);) {
    if (line.starts_with("BEGUN ") || line.starts_with("ENDED o") || line.starts_with("ENDED i"))
      lines.push_back(line);
  }
  return lines;
}

void send(PaymentsWorld& world, const std::string& id) {
  Record record;
  record.value = kPayment;
  record.headers = {{"event-id", id}};
  record.partition = 0;
  world.produce_record(record);
}

std::string error_of(const PaymentsWorld& world, const std::string& id) {
  return world.value(fmt::format(
      "SELECT coalesce((SELECT error FROM pawl.dead_letters WHERE idempotency_key = '{}'), '')",
      id));
}

}  // namespace

TEST_CASE("what is around a handler is begun from the outside and told from the inside") {
  struct Case {
    const char* handler;
    const char* call;  // what they say of it
  };
  const auto c = GENERATE(Case{"name = \"payment\"", "of payment, 1 from e0"},
                          Case{"name = \"statements\"", "of statements, 1 from e0"},
                          Case{"name = \"batch\"", "of batch, 1 from e0"});
  CAPTURE(c.handler);
  PaymentsWorld world(1);
  world.use_handler(c.handler);
  send(world, "e0");
  const auto lines = drain(world);
  CHECK(lines == std::vector<std::string>{fmt::format("BEGUN outer {}", c.call),
                                          fmt::format("BEGUN inner {}", c.call),
                                          fmt::format("ENDED inner {}: returned", c.call),
                                          fmt::format("ENDED outer {}: returned", c.call)});
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);

  send(world, "e0");  // alone, so that not even statements are said ahead
  CHECK(drain(world).empty());
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
}

TEST_CASE("around a batch there is one call with all its messages, around SQL none") {
  PaymentsWorld world(1);
  world.use_handler(GENERATE(as<std::string>{}, kBatchCode, kBatchSql, kFlightSql));
  for (int i = 0; i < 20; ++i)
    send(world, fmt::format("e{}", i));
  const auto calls = drain(world);
  CHECK(world.number("SELECT count(*) FROM ledger") == 20);
  const auto of_messages = std::ranges::count_if(
      calls, [](const std::string& line) { return line.find("1 from") == std::string::npos; });
  CAPTURE(calls);
  if (world.config().find("sql = ") != std::string::npos) {
    CHECK(calls.empty());
  } else {
    CHECK(of_messages > 0);
    CHECK(calls.size() < 4U * 20);
  }
}

TEST_CASE("what a handler throws passes all that is around it, and fails its message") {
  PaymentsWorld world(1);
  world.use_handler("name = \"throws_on_poison\"");
  send(world, "poison");
  // The end that throws as well does not hide what the handler threw.
  send(world, "poison and throws after");
  send(world, "good");
  const auto lines = drain(world);
  CAPTURE(lines);
  for (const auto* id : {"poison", "poison and throws after"}) {
    CHECK_THAT(error_of(world, id), ContainsSubstring("poisoned"));
    for (const auto* name : {"inner", "outer"}) {
      CHECK(std::ranges::count(lines, fmt::format("ENDED {} of throws_on_poison, 1 from {}: threw "
                                                  "poisoned",
                                                  name, id)) == 1);
    }
  }
  CHECK(world.number("SELECT count(*) FROM ledger") == 1);
  CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 2);
}

TEST_CASE("what is around a handler fails the message by an exception of its own") {
  const std::string id = GENERATE("outer throws before", "inner throws before",
                                  "inner throws after", "outer throws after");
  CAPTURE(id);
  const std::string handler = GENERATE("payment", "statements", "batch");
  PaymentsWorld world(1);
  world.use_handler(fmt::format("name = \"{}\"", handler));
  send(world, id);
  send(world, "first");
  send(world, "nobody looks");
  const auto lines = drain(world);
  CAPTURE(lines);
  CHECK_THAT(error_of(world, id), ContainsSubstring(id));
  CHECK(world.value("SELECT string_agg(event_id, ',' ORDER BY event_id) FROM ledger") ==
        "first,nobody looks");
  // The outer one is told what the inner one threw, and none what it threw itself.
  const auto told = [&](const std::string& name, const std::string& end) {
    return std::ranges::count(lines,
                              fmt::format("ENDED {} of {}, 1 from {}: {}", name, handler, id, end));
  };
  const auto from_inside = "threw " + id;
  CHECK((told("inner", "returned") > 0) == (id.find("after") != std::string::npos));
  CHECK(told("inner", from_inside) == 0);
  CHECK((told("outer", from_inside) > 0) == id.starts_with("inner"));
  CHECK((told("outer", "returned") > 0) == (id == "outer throws after"));
}
