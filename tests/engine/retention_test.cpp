#include <fmt/format.h>

#include <csignal>
#include <sstream>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Keys live for so short that they go while messages come.
constexpr const char* kShort = "[retention]\nkeys = \"1s\"\ninterval = \"100ms\"\nload = 100\n";

/// What is wrong with the books beside the keys, which retention takes away.
std::string imbalance_but_keys(const PaymentsWorld& world) {
  std::istringstream lines(world.imbalance());
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("keys: "))
      found += line + '\n';
  }
  return found;
}

}  // namespace

TEST_CASE("keys go while two processes consume, and the books stay balanced") {
  PaymentsWorld world(4);
  ProgramOptions options;
  options.extra_config = kShort;
  const auto one = world.start(options);
  const ShowOnFailure show_one("one", *one);
  const auto two = world.start(options);
  const ShowOnFailure show_two("two", *two);
  // Until keys have gone, so that messages were applied beside the removal.
  wait_until(
      [&] {
        world.produce(200);
        return world.value("SELECT sum(removed_keys) > 300 FROM pawl.retention_state") == "t";
      },
      60s, "keys to go");
  world.wait_until_all_processed();
  CHECK(imbalance_but_keys(world).empty());
  // At the log's end all of them go.
  wait_until([&] { return world.value("SELECT count(*) FROM pawl.idempotency_keys") == "0"; }, 60s,
             "all keys to go");
  stop_cleanly(*one);
  stop_cleanly(*two);
  CHECK(world.value("SELECT holder FROM pawl.retention_state").empty());
}

TEST_CASE("a process that dies while it removes is followed by another") {
  PaymentsWorld world(2);
  world.produce(200);
  world.drain();
  // As a process that was killed leaves it.
  world.execute(
      "INSERT INTO pawl.retention_state (consumer_id, holder, lease_until)"
      " SELECT consumer_id, 'dead', now() + interval '3 seconds' FROM pawl.consumers");
  ProgramOptions options;
  options.extra_config = kShort;
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return world.value("SELECT count(*) FROM pawl.idempotency_keys") == "0"; }, 60s,
             "all keys to go");
  CHECK(world.value("SELECT lease_until IS NULL OR lease_until > now() - interval '1 minute'"
                    " FROM pawl.retention_state") == "t");
  stop_cleanly(*process);
  CHECK(imbalance_but_keys(world).empty());
}

TEST_CASE("a consumer removes the keys of a handler by that one's own retention") {
  PaymentsWorld world(1);
  world.use_handler(std::string(kFlightSql) + "\nretention = \"1s\"\n");
  world.produce(20);
  ProgramOptions options;
  options.extra_config = "[retention]\nkeys = \"7d\"\ninterval = \"100ms\"\nload = 100\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  world.wait_until_all_processed();
  CHECK(world.value("SELECT retention_ms FROM pawl.scope_sources") == "1000");
  wait_until([&] { return world.value("SELECT count(*) FROM pawl.idempotency_keys") == "0"; }, 60s,
             "all keys to go");
  stop_cleanly(*process);
}

TEST_CASE("a consumer stops promptly in the middle of a removal") {
  PaymentsWorld world(1);
  world.produce(10);
  world.drain();
  world.execute(
      "INSERT INTO pawl.idempotency_keys"
      " SELECT s.scope_id, 'more' || g, 0, s.source_id, 0, g, now() - interval '1 hour'"
      "   FROM pawl.scope_sources s CROSS JOIN generate_series(1, 100000) g");
  ProgramOptions options;
  options.extra_config = "[retention]\nkeys = \"1s\"\ninterval = \"100ms\"\nload = 1\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return world.number("SELECT count(*) FROM pawl.idempotency_keys") < 100000; },
             60s, "the removal to begin");
  stop_cleanly(*process);
  CHECK(world.number("SELECT count(*) FROM pawl.idempotency_keys") > 1000);
  CHECK(world.value("SELECT holder FROM pawl.retention_state").empty());
}

TEST_CASE("a key beyond the retention is forgotten, and its message is applied as a new one") {
  PaymentsWorld world(1);
  world.produce_one("again", 1);
  world.drain();
  world.execute("UPDATE pawl.idempotency_keys SET created_at = now() - interval '10 days'");
  ProgramOptions options;
  options.extra_config = "[retention]\nkeys = \"7d\"\ninterval = \"100ms\"\nload = 100\n";
  const auto process = world.start(options);
  const ShowOnFailure show("consumer", *process);
  wait_until([&] { return world.value("SELECT count(*) FROM pawl.idempotency_keys") == "0"; }, 60s,
             "the key to go");
  // Beyond the retention: what is not promised happens, and the books say so.
  world.execute("DELETE FROM ledger");
  world.produce_one("again", 1);
  world.wait_until_all_processed();
  CHECK(world.value("SELECT entries FROM accounts WHERE id = 'acc-1'") == "2");
  CHECK(world.value("SELECT count(*) FROM pawl.idempotency_keys") == "1");
  stop_cleanly(*process);
}
