#include <fmt/format.h>
#include <signal.h>

#include <pqxx/pqxx>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "register_moves.hpp"

namespace {

/// From the database's return to the first message: promised within 2 s on a machine that has time
/// for it; the rest of this deadline is for one that has not.
constexpr auto kBackWithin = 30s;

/// The workers of one process: each has a connection and says once that it lost it.
constexpr int kWorkers = 4;

/// Partitions whose offset in Kafka is beyond what the database has. Kafka is asked first: the
/// database only goes on meanwhile.
std::string told_too_much(PaymentsWorld& world) {
  const auto committed = world.broker().committed_offsets(world.group(), world.topic());
  std::string found;
  for (const auto& [partition, told] : committed) {
    const auto stored = world.stored(partition).value();
    if (told.offset > stored + 1)
      found +=
          fmt::format("[{}]: Kafka was told {}, stored is {}; ", partition, told.offset, stored);
  }
  return committed.empty() ? "nothing was told" : found;
}

}  // namespace

// Fails when an in-doubt COMMIT counts as done (before: the message is lost) or as failed without
// asking the register (after: the next advance is out of order, and the claim finds a duplicate).
TEST_CASE("a connection cut around COMMIT neither loses nor repeats a message") {
  PaymentsWorld world(4);
  const RegisterMoves moves(world);
  const auto mode = GENERATE(from_range(modes()));
  CAPTURE(mode.name);
  world.use(mode);
  PostgresProxy proxy(world.url());
  world.produce(200);
  pawl::test::ProgramOptions options;
  options.url = proxy.url();
  const auto process = world.start(options);
  const ShowOnFailure show_process("process", *process);
  const int apart = mode.batches ? 1 : 7;
  for (int round = 0; round < 5; ++round) {
    for (const auto moment : {Moment::kBefore, Moment::kAfter}) {
      const auto cut = proxy.cut(moment, PostgresProxy::is_commit, 1 + round * apart);
      world.produce(120);
      cut.wait(60s);
    }
  }
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(moves.violations() == "");
  REQUIRE(proxy.counts().cut == 10);
  REQUIRE(occurrences(*process, "EVENT commit_outcome_unknown") > 0);
  REQUIRE(occurrences(*process, "EVENT partition_revoked") == 0);
  stop_cleanly(*process);
}

TEST_CASE("all connections cut at once, again and again under load, leave balanced books") {
  PaymentsWorld world(4);
  const auto mode = GENERATE(from_range(modes()));
  CAPTURE(mode.name);
  world.use(mode);
  PostgresProxy proxy(world.url());
  pawl::test::ProgramOptions options;
  options.url = proxy.url();
  world.produce(200);
  const auto process = world.start(options);
  const ShowOnFailure show_process("process", *process);
  for (int round = 0; round < 4; ++round) {
    world.produce(200);
    world.wait_until_processed(world.produced() - 150);
    proxy.cut_all();
  }
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  stop_cleanly(*process);
}

TEST_CASE("a database that stalls for five seconds is waited for") {
  PaymentsWorld world(4);
  PostgresProxy proxy(world.url());
  pawl::test::ProgramOptions options;
  options.url = proxy.url();
  world.produce(500);
  const auto process = world.start(options);
  const ShowOnFailure show_process("process", *process);
  world.wait_until_processed(100);
  proxy.stall_all_for(5s);
  world.produce(500);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(occurrences(*process, "EVENT partition_revoked") == 0);
  stop_cleanly(*process);
}

TEST_CASE("a crashed PostgreSQL is waited for in the group, and work goes on when it is back") {
  const auto mode = GENERATE(from_range(modes()));
  const std::string commits = mode.name == "sql" ? GENERATE("on", "off") : "";
  CAPTURE(mode.name, commits);
  PostgresServer server;
  PaymentsWorld world(4, &server);
  const RegisterMoves moves(world);
  world.use(mode);
  world.set("consumer.durability_interval=100ms");
  world.set_kafka_options("commit_interval = \"100ms\"");
  if (!commits.empty())
    world.set_postgres_options(fmt::format("synchronous_commit = \"{}\"", commits));
  world.produce(500);
  const auto process = world.start();
  const ShowOnFailure show_process("process", *process);
  for (int round = 1; round <= 2; ++round) {
    world.wait_until_processed(world.produced() - 400);
    wait_until(
        [&] {
          return occurrences(*process, "EVENT database_connected") >= round * kWorkers &&
                 occurrences(*process, "EVENT partition_assigned") >= round * kWorkers;
        },
        30s, "every worker to be back");
    server.stop(StopMode::kImmediate);
    wait_until(
        [&] { return occurrences(*process, "EVENT database_disconnected") >= round * kWorkers; },
        30s, "every worker to notice");
    world.produce(500);
    server.start();
    // Kafka was told of nothing that the crash has taken back.
    if (commits != "off")
      REQUIRE(told_too_much(world) == "");
    const auto at_return = world.processed();
    world.wait_until_processed(at_return + 1, kBackWithin);
  }
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(moves.violations() == "");
  // It stayed a member and kept its partitions, and did not repeat that the database is away.
  REQUIRE(occurrences(*process, "EVENT partition_revoked") == 0);
  REQUIRE(world.broker().stable_members(world.group()) == 1);
  REQUIRE(occurrences(*process, "EVENT database_disconnected") == 2 * kWorkers);
  stop_cleanly(*process);
}

// Fails when a worker that has not acquired again makes durable, and tells Kafka, what it had
// reached before the crash.
TEST_CASE("what a crash has taken back is not said to be on disk") {
  PostgresServer server;
  PaymentsWorld world(4, &server);
  world.use(pawl::test::mode("flights, replayable"));
  world.set("consumer.durability_interval=100ms");
  world.produce(3000);
  const auto process = world.start();
  const ShowOnFailure show_process("process", *process);
  world.wait_until_processed(500);
  process->kill(SIGSTOP);  // between two commits that wait for the disk
  pawl::test::wait_until_stopped(*process, 60s);
  server.stop(StopMode::kImmediate);
  server.start();
  pqxx::connection stranger(world.url());
  pqxx::work holds_all(stranger);
  holds_all.exec("SELECT FROM pawl.processed_kafka_offsets FOR UPDATE");
  process->kill(SIGCONT);
  const std::string waiting = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  wait_until([&] { return world.number("SELECT count(*) " + waiting) == kWorkers; }, 30s,
             "every worker to wait for the register");
  // By now they have shown Kafka, by a commit, that they are members.
  REQUIRE(told_too_much(world) == "");
  // The transaction of an acquire begins with what became of the owner before.
  REQUIRE(world.value("SELECT string_agg(query, '; ') " + waiting +
                      " AND query NOT LIKE '%LEFT JOIN pawl.first_fetches%'") == "");
  holds_all.commit();
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  stop_cleanly(*process);
}

// Fails when what must be on disk waits for a standby that the server itself does not wait for.
TEST_CASE("replayable waits for no standby where the server says \"local\"") {
  PostgresServer server(
      {.settings = {"synchronous_commit=local", "synchronous_standby_names=gone"}});
  PaymentsWorld world(2, &server);
  world.use(pawl::test::mode("flights, replayable"));
  world.produce(100);
  world.drain();
  REQUIRE(world.imbalance() == "");
}

// Fails when a position, a scope or anything else that was read before the crash is believed after
// it.
TEST_CASE("a database that comes back behind takes Kafka back with it") {
  PostgresServer server;
  PaymentsWorld world(4, &server);
  world.produce(600);
  const auto process = world.start();
  const ShowOnFailure show_process("process", *process);
  world.wait_until_processed(300);
  server.save_copy();
  world.wait_until_all_processed();
  world.produce(600);
  world.wait_until_all_processed();
  const auto before = world.processed();
  process->kill(SIGSTOP);  // so that the copy is seen as it was
  server.restore_copy();
  REQUIRE(world.processed() < before);
  process->kill(SIGCONT);
  world.produce(300);
  world.wait_until_all_processed();
  REQUIRE(world.imbalance() == "");
  REQUIRE(occurrences(*process, "EVENT partition_revoked") == 0);
  stop_cleanly(*process);
}

TEST_CASE(
    "a database that comes back from before the first contact halts instead of beginning anew") {
  PostgresServer server;
  PaymentsWorld world(4, &server);
  server.save_copy();
  world.produce(300);
  const auto process = world.start();
  const ShowOnFailure show_process("process", *process);
  world.wait_until_all_processed();
  process->kill(SIGSTOP);
  server.restore_copy();
  REQUIRE(world.processed() == 0);
  process->kill(SIGCONT);
  process->wait_for_output("EVENT partition_halted", 30s);
  REQUIRE(world.processed() == 0);
  REQUIRE(world.number("SELECT count(*) FROM ledger") == 0);
}

// Fails without the metadata that pawl commits to Kafka, or without holding it against the
// register.
TEST_CASE("an empty database under a group that has processed before halts and writes nothing") {
  PaymentsWorld world(4);
  // So long the group waits for the one that was killed.
  world.set_kafka_options("session_timeout = \"2s\"");
  world.produce(300);
  const bool killed = GENERATE(false, true);
  CAPTURE(killed);
  {
    const auto process = world.start();
    const ShowOnFailure show_process("process", *process);
    world.wait_until_all_processed();
    if (killed) {
      // Also a process that never came to leave has told Kafka where its positions are.
      process->kill(SIGKILL);
      process->wait(60s);
    } else {
      stop_cleanly(*process);
    }
  }
  const auto ours = world.value("SELECT database_id FROM pawl.database_identity");

  const PaymentsWorld other(1);  // an empty database with the same tables
  const auto theirs = other.value("SELECT database_id FROM pawl.database_identity");
  pawl::test::ProgramOptions options;
  options.url = other.url();
  options.arguments = {"--drain"};
  const auto process = world.start(options);
  const ShowOnFailure show_process("process", *process);
  const auto status = process->wait(60s);
  REQUIRE(status.code == 4);
  REQUIRE(process->output().find(ours) != std::string::npos);
  REQUIRE(process->output().find(theirs) != std::string::npos);
  REQUIRE(process->output().find(" --all --to committed") != std::string::npos);
  REQUIRE(other.number("SELECT count(*) FROM ledger") == 0);
  REQUIRE(other.number("SELECT count(*) FROM pawl.idempotency_keys") == 0);
  REQUIRE(other.number("SELECT count(*) FROM pawl.processed_kafka_offsets") == 0);

  // In its own database the group goes on as if nothing had happened.
  world.produce(100);
  world.drain();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("another Kafka cluster under the same name is refused with its reason") {
  PaymentsWorld world(2);
  world.produce(100);
  world.drain();
  pawl::testing::KafkaBroker other;
  other.create_topic(world.topic(), 2);
  const auto process = world.start({{"--set", "kafka.bootstrap_servers=" + other.bootstrap()}});
  const auto status = process->wait(60s);
  REQUIRE(status.code == 1);
  REQUIRE(occurrences(*process, "FATAL") == 1);
  REQUIRE(occurrences(*process, "kafka.cluster") == 1);
  REQUIRE(world.imbalance() == "");
}
