#include <fmt/format.h>
#include <signal.h>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "register_moves.hpp"

// Fails without the epoch compare in pawl.advance (the old owner commits its message a second time,
// or moves the offset back), and without ending the stalled session (nobody can take the partition
// before idle_in_transaction_session_timeout, a minute).
TEST_CASE(
    "an owner stopped inside a message loses its partition and changes nothing when it wakes") {
  PaymentsWorld world(4);
  const RegisterMoves moves(world);
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set_postgres_options("stalled_owner_after = \"1s\"\nlock_timeout = \"2s\"");
  const auto [name, step] =
      GENERATE(table<std::string, std::string>({{"sql", "message_fetched"},
                                                {"sql", "handler_returned"},
                                                {"sql", "offset_advancing"},
                                                {"sql", "commit_sent"},
                                                {"code", "message_fetched"},
                                                {"code", "handler_returned"},
                                                {"code", "offset_advancing"},
                                                {"code", "commit_sent"},
                                                {"flights", "message_fetched"},
                                                {"flights", "commit_sent"},
                                                {"flights, replayable", "commit_sent"},
                                                {"sql batches, replayable", "commit_sent"},
                                                {"code batches", "handler_returned"},
                                                {"code batches", "offset_advancing"}}));
  CAPTURE(name, step);
  const auto& mode = pawl::test::mode(name);
  world.use(mode);
  const int nth = mode.batches ? 40 : 200;

  world.produce(1000);
  const auto zombie = world.start({{"--freeze", fmt::format("{}:{}", step, nth)}});
  const ShowOnFailure show_zombie("zombie", *zombie);
  wait_until_stopped(*zombie, 40s);
  const auto zombie_id =
      world.value("SELECT owner FROM pawl.processed_kafka_offsets WHERE owner IS NOT NULL LIMIT 1");

  const auto heir = world.start();
  const ShowOnFailure show_heir("heir", *heir);
  world.produce(500);
  world.wait_until_all_processed(60s);
  const auto by_zombie = moves.made_by(zombie_id);
  REQUIRE(world.imbalance() == "");

  zombie->kill(SIGCONT);
  // It finds out by its dead session, by the fence, or by Kafka; in each case it gives up.
  zombie->wait_for_output("EVENT partition_revoked", 30s);
  REQUIRE(moves.made_by(zombie_id) == by_zombie);

  // Back in the group as a member like any other, it may own partitions again.
  wait_until([&] { return world.broker().stable_members(world.group()) == 2; }, 30s,
             "both processes to be members");
  world.produce(500);
  world.wait_until_all_processed(60s);
  stop_cleanly(*zombie);
  stop_cleanly(*heir);
  REQUIRE(world.imbalance() == "");
  REQUIRE(moves.violations() == "");
}

// Fails when only the assignment remembers from whom a partition was taken: the heir has been its
// own predecessor since, and nobody ends the session that holds the message's key.
TEST_CASE("an heir that is away for a moment still knows whose locks it waits for") {
  PaymentsWorld world(1);
  world.set_kafka_options("session_timeout = \"1s\"");
  world.set_postgres_options("stalled_owner_after = \"3s\"\nlock_timeout = \"2s\"");
  world.produce(300);
  const auto zombie = world.start({{"--freeze", "handler_returned:100"}});
  const ShowOnFailure show_zombie("zombie", *zombie);
  wait_until_stopped(*zombie, 40s);

  const auto heir = world.start();
  const ShowOnFailure show_heir("heir", *heir);
  heir->wait_for_output("EVENT fetch_positioned", 40s);
  heir->kill(SIGSTOP);
  wait_until([&] { return world.broker().stable_members(world.group()) == 0; }, 30s,
             "the heir to be taken for dead");
  heir->kill(SIGCONT);
  heir->wait_for_output("EVENT partition_revoked", 30s);
  // Much sooner than idle_in_transaction_session_timeout, which ends the session at last.
  world.wait_until_all_processed(30s);
  REQUIRE(occurrences(*heir, "of an earlier owner of the partition") == 1);
  REQUIRE(world.imbalance() == "");
  zombie->kill(SIGKILL);
  stop_cleanly(*heir);
}

// Fails when advance does not compare epochs (both apply), when a fenced owner does not back off
// (nobody gets anything done), and when owners end each other's live sessions.
TEST_CASE("two live processes forced onto the same partitions share the work without a storm") {
  PaymentsWorld world(2);
  const RegisterMoves moves(world);
  world.set_kafka_options("assignment = \"manual\"\npartitions = [0, 1]");
  world.set_postgres_options("stalled_owner_after = \"1s\"");
  world.produce(1000);
  const auto one = world.start();
  const ShowOnFailure show_one("one", *one);
  const auto two = world.start();
  const ShowOnFailure show_two("two", *two);
  // There is work until both got some, however fast the first is.
  wait_until(
      [&] {
        if (moves.movers() == 2)
          return true;
        world.produce(100);
        return false;
      },
      60s, "both to have processed something");
  world.produce(2000);
  world.wait_until_all_processed(90s);

  REQUIRE(world.imbalance() == "");
  REQUIRE(moves.violations() == "");
  REQUIRE(occurrences(*one, "EVENT database_disconnected") == 0);
  REQUIRE(occurrences(*two, "EVENT database_disconnected") == 0);
  // Taking a partition costs a seek and some locks: most of the work must be messages.
  REQUIRE(world.number("SELECT sum(owner_epoch >> 24) FROM pawl.processed_kafka_offsets") <
          world.produced() / 5);
  stop_cleanly(*one);
  stop_cleanly(*two);
  // PostgreSQL counts them from 14 on.
  if (world.number("SELECT current_setting('server_version_num')::integer") >= 140000) {
    REQUIRE(world.number("SELECT sessions_killed FROM pg_stat_database"
                         " WHERE datname = current_database()") == 0);
  }
}

TEST_CASE(
    "the same key in two partitions at the same moment has one effect, the other sees the "
    "response") {
  PaymentsWorld world(2);
  world.use_handler("name = \"respond\"");
  world.set_kafka_options("assignment = \"manual\"");
  const auto owner_of = [&](const std::string& partition, const std::string& freeze) {
    std::vector<std::string> arguments{"--set", "kafka.partitions=[" + partition + "]"};
    if (!freeze.empty())
      arguments.insert(arguments.end(), {"--freeze", freeze});
    return world.start({arguments});
  };
  world.produce_one("payment-1", 10, 0);
  world.produce_one("payment-1", 10, 1);

  // The first holds the claimed key in an open transaction; the second can only wait for it.
  const auto first = owner_of("0", "handler_returned:1");
  const ShowOnFailure show_first("first", *first);
  wait_until_stopped(*first, 30s);
  const auto second = owner_of("1", "");
  const ShowOnFailure show_second("second", *second);
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                   " AND wait_event_type = 'Lock' AND query LIKE '%idempotency_keys%'") == 1;
      },
      30s, "the second to wait for the first one's key");

  SECTION("the first commits") {
    first->kill(SIGCONT);
    second->wait_for_output("RESPONSE response to payment-1 at 1", 30s);
  }
  SECTION("the first dies") {
    first->kill(SIGKILL);
    world.wait_until_processed(1, 30s);
    const auto successor = owner_of("0", "");
    const ShowOnFailure show_successor("successor", *successor);
    successor->wait_for_output("RESPONSE response to payment-1 at 0", 30s);
  }
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("keys that race through two partitions under load have one effect each") {
  PaymentsWorld world(2);
  world.use_handler("name = \"respond\"");
  world.set_kafka_options("assignment = \"manual\"");
  for (int i = 0; i < 300; ++i) {
    const auto id = fmt::format("race-{}", i);
    world.produce_one(id, i + 1, 0);
    world.produce_one(id, i + 1, 1);
  }
  const auto one = world.start({{"--set", "kafka.partitions=[0]"}});
  const ShowOnFailure show_one("one", *one);
  const auto two = world.start({{"--set", "kafka.partitions=[1]"}});
  const ShowOnFailure show_two("two", *two);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  stop_cleanly(*one);
  stop_cleanly(*two);
  REQUIRE(occurrences(*one, "RESPONSE response") + occurrences(*two, "RESPONSE response") == 300);
}
