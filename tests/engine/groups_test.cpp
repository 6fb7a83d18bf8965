// Processes that share a topic: they come, go, die, lose Kafka, and meet new partitions.
#include <fmt/format.h>
#include <signal.h>

#include <deque>
#include <optional>
#include <pqxx/pqxx>

#include "free_port.hpp"
#include "group_of_processes.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// Logs whose first offsets are long gone: whoever asks for offset 0 is refused.
void remove_first_offsets(PaymentsWorld& world, int partitions) {
  pawl::testing::KafkaProducer producer(world.broker().bootstrap());
  for (int p = 0; p < partitions; ++p) {
    for (int i = 0; i < 3; ++i) {
      producer.send(world.topic(), {.key = "old", .value = "not a payment", .partition = p});
    }
  }
  producer.flush();
  for (int p = 0; p < partitions; ++p)
    world.broker().delete_records(world.topic(), p, -1);
}

}  // namespace

TEST_CASE("processes that come, go and die under load share 32 partitions without a stall") {
  const auto protocol = GENERATE(from_range(protocols()));
  INFO(protocol.name);
  PaymentsWorld world(32);
  remove_first_offsets(world, 32);
  world.set_kafka_options(protocol.config);
  GroupOfProcesses group(world);

  group.join();
  group.join();
  for (int round = 0; round < 8; ++round) {
    world.produce_to_each_partition(4);
    if (round % 4 == 0)
      group.join();
    if (round % 4 == 1)
      group.leave_oldest();
    if (round % 4 == 2)
      group.kill_oldest();
    if (round % 4 == 3)
      group.join();
    for (int burst = 0; burst < 4; ++burst)
      world.produce_to_each_partition(2);
    if (round % 2 == 1) {
      INFO("round " << round << "\n" << group.problems());
      REQUIRE_NOTHROW(world.wait_until_all_processed(60s));
    }
  }
  world.wait_until_all_processed(60s);
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(group.count("Seeking again") == 0);
}

TEST_CASE("a planned hand-over is clean: released, nobody fenced, nothing done twice") {
  const auto protocol = GENERATE(from_range(protocols()));
  INFO(protocol.name);
  PaymentsWorld world(16);
  world.set_kafka_options(protocol.config);
  GroupOfProcesses group(world);

  group.join();
  world.produce_to_each_partition(20);
  world.wait_until_all_processed(30s);
  for (int round = 0; round < 5; ++round) {
    group.join();
    world.produce_to_each_partition(10);
    group.wait_until_shared_by(2, 30s);
    world.produce_to_each_partition(10);
    group.leave_oldest();
    world.produce_to_each_partition(10);
    group.wait_until_shared_by(1, 30s);
    world.wait_until_all_processed(60s);
  }
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(world.number("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE NOT released") ==
          0);
  REQUIRE(group.count("EVENT partition_fenced") == 0);
  REQUIRE(group.count("EVENT commit_outcome_unknown") == 0);
  REQUIRE(group.count("Seeking again") == 0);
}

TEST_CASE("a static member that restarts within its session keeps its partitions") {
  const auto* assignor = GENERATE("cooperative-sticky", "range");
  INFO(assignor);
  PaymentsWorld world(8);
  world.set_kafka_options(fmt::format("session_timeout = \"25s\"\nassignor = \"{}\"", assignor));
  GroupOfProcesses group(world);
  auto& stays = group.join({"--set", "kafka.group_instance_id=stays"});
  group.join({"--set", "kafka.group_instance_id=restarts"});
  group.wait_until_shared_by(2, 40s);
  world.produce_to_each_partition(20);
  world.wait_until_all_processed(30s);
  const auto assigned = group.count_in(stays, "EVENT assignment_received");
  const auto revoked = group.count_in(stays, "EVENT partition_revoked");

  for (const bool killed : {false, true}) {
    if (killed) {
      group.kill_newest();
    } else {
      group.leave_newest();
    }
    world.produce_to_each_partition(20);
    group.join({"--set", "kafka.group_instance_id=restarts"});
    // Well within the session timeout: nobody else could have got its partitions.
    world.wait_until_all_processed(15s);
  }
  REQUIRE(group.count_in(stays, "EVENT assignment_received") == assigned);
  REQUIRE(group.count_in(stays, "EVENT partition_revoked") == revoked);

  // A second process under the same name: one of them must go, and say why.
  auto& old = group.newest();
  group.join({"--set", "kafka.group_instance_id=restarts"});
  const auto status = old.wait(30s);
  INFO(old.output());
  REQUIRE(status.code == 1);
  REQUIRE(old.output().find("permanently ended the group membership") != std::string::npos);
  world.produce_to_each_partition(5);
  world.wait_until_all_processed(60s);
  group.leave_all();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("processes that lose Kafka stay, say so, and go on soon after it returns") {
  const auto protocol = GENERATE(from_range(protocols()));
  INFO(protocol.name);
  pawl::testing::KafkaBroker broker;
  PaymentsWorld world(8, nullptr, &broker);
  world.set_kafka_options(protocol.config);
  GroupOfProcesses group(world);
  group.join();
  group.join();
  group.wait_until_shared_by(2, 30s);
  world.produce_to_each_partition(10);
  world.wait_until_all_processed(30s);

  for (const bool killed : {false, true}) {
    world.produce_to_each_partition(20);
    const int said = group.count("EVENT warning");
    if (killed) {
      broker.kill();
    } else {
      broker.stop();
    }
    pawl::testing::wait_until([&] { return group.count("EVENT warning") > said; }, 60s,
                              "a process to say that Kafka is away");
    broker.start();
    world.produce_to_each_partition(10);
    world.wait_until_all_processed(60s);
  }
  REQUIRE(group.all_running());
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(group.count("Seeking again") == 0);
  REQUIRE(group.count("EVENT partition_halted") == 0);
}

// A client of the classic protocol depends on scripts/lib/librdkafka.patch for this.
TEST_CASE("processes go on with a Kafka that is back under another address") {
  const auto protocol = GENERATE(protocols().front(), protocols().back());
  INFO(protocol.name);
  pawl::testing::KafkaBroker broker;
  PaymentsWorld world(8, nullptr, &broker);
  world.set_kafka_options(protocol.config);
  const auto port = free_port();
  // At first nobody is at the second.
  world.set(fmt::format("kafka.bootstrap_servers={},127.0.0.1:{}", broker.bootstrap(), port));
  GroupOfProcesses group(world);
  group.join();
  group.join();
  group.wait_until_shared_by(2, 30s);
  world.produce_to_each_partition(10);
  world.wait_until_all_processed(30s);

  world.move_broker(port);
  world.produce_to_each_partition(10);
  world.wait_until_all_processed(60s);
  REQUIRE(group.all_running());
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(group.count("EVENT partition_halted") == 0);
}

TEST_CASE(
    "a topic that gains partitions is followed; the new ones are read from their first record") {
  const auto protocol = GENERATE(from_range(protocols()));
  INFO(protocol.name);
  PaymentsWorld world(2);
  // Even a consumer that began at the end must not miss what comes to a new partition.
  world.set_kafka_options(std::string(protocol.config) + "start = \"latest\"\n");
  GroupOfProcesses group(world);
  group.join();
  group.join();
  group.wait_until_shared_by(2, 30s);
  world.produce_to_each_partition(10);
  world.wait_until_all_processed(30s);

  world.add_partitions(6);
  world.produce_to_each_partition(10);
  world.wait_until_all_processed(30s);
  for (int p = 2; p < 6; ++p)
    REQUIRE(world.in_register(p, "base_offset") == "0");
  group.leave_all();
  REQUIRE(world.imbalance() == "");
}

TEST_CASE("a partition that is lost and comes back while its message is in hand goes on") {
  const auto* assignor = GENERATE("cooperative-sticky", "range");
  INFO(assignor);
  PaymentsWorld world(2);
  world.set_kafka_options(fmt::format("assignor = \"{}\"\nsession_timeout = \"2s\"\n", assignor));
  // One message of each partition takes longer than the way out of the group and back.
  world.use_handler(R"toml(sql = [
  "SELECT pg_sleep(CASE WHEN {offset}::bigint = 20 THEN 8 ELSE 0 END)",
  "INSERT INTO ledger (event_id, account, amount) VALUES ({header:event-id}, {/account}, {/amount}::bigint)",
  "UPDATE accounts SET balance = balance + {/amount}::bigint, entries = entries + 1 WHERE id = {/account}",
])toml");
  GroupOfProcesses group(world);
  auto& process = group.join();
  world.produce_to_each_partition(20);
  world.wait_until_all_processed(30s);
  world.produce_to_each_partition(1);
  pawl::testing::wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                   "   AND wait_event = 'PgSleep'") == 2;
      },
      60s, "both messages to be in hand");

  process.kill(SIGSTOP);
  pawl::testing::wait_until([&] { return world.broker().stable_members(world.group()) == 0; }, 30s,
                            "Kafka to give the stopped member up");
  process.kill(SIGCONT);
  world.produce_to_each_partition(10);
  INFO(process.output());
  REQUIRE_NOTHROW(world.wait_until_all_processed(40s));
  REQUIRE(group.count("EVENT partition_revoked") >= 2);
  group.leave_all();
  REQUIRE(world.imbalance() == "");
  REQUIRE(group.count("Seeking again") == 0);
}

TEST_CASE("a process that drains outlasts a Kafka that is away for longer than its session") {
  KafkaBroker broker;
  PaymentsWorld world(2, nullptr, &broker);
  world.set_kafka_options("session_timeout = \"2s\"\n");
  world.produce_to_each_partition(200);
  pqxx::connection other(world.url());
  std::optional<pqxx::work> lock(other);
  lock->exec("LOCK TABLE ledger");
  const auto process = world.start({.arguments = {"--drain"}});
  const ShowOnFailure show("consumer", *process);
  wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pg_locks WHERE relation = 'ledger'::regclass"
                   " AND NOT granted") > 0;
      },
      60s, "messages to be in hand");
  broker.freeze();
  process->wait_for_output("EVENT partition_revoked", 60s);
  broker.thaw();
  lock.reset();
  CHECK(process->wait(120s).code == 0);
  CHECK(world.processed() == world.produced());
  CHECK(world.imbalance() == "");
}

// A member that is gone and did not say so holds every rebalance up until its session times out.
TEST_CASE("a process without partitions leaves the group when it ends") {
  const auto* assignor = GENERATE("cooperative-sticky", "range");
  CAPTURE(assignor);
  PaymentsWorld world(1);
  world.set_kafka_options(fmt::format("assignor = \"{}\"\nsession_timeout = \"5m\"\n", assignor));
  world.produce(1);
  const auto first = world.start();
  world.wait_for_stored(0, 0);
  ProgramOptions drains;
  drains.arguments = {"--drain"};
  CHECK(world.start(drains)->wait(60s).code == 0);
  pawl::test::stop_cleanly(*first);
  const auto second = world.start();
  world.produce(1);
  world.wait_for_stored(0, 1);
  pawl::test::stop_cleanly(*second);
}

// librdkafka says nothing of it.
TEST_CASE("on a broker before Kafka 4 the wait for a group of KIP-848 says what to write") {
  if (protocols().size() == kProtocols.size())
    SKIP("this broker has such groups: scripts/test --matrix kafka-3.9");
  PaymentsWorld world(1);
  world.set_kafka_options(kProtocols.back().config);
  const auto process = world.start();
  REQUIRE_NOTHROW(process->wait_for_output("Set it to \"classic\" there", 60s));
  process->kill(SIGKILL);
}
