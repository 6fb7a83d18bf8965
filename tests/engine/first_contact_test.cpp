// Where a consumer begins that PostgreSQL has never seen: asked once, for all partitions at once.
#include <fmt/format.h>
#include <signal.h>

#include "group_of_processes.hpp"
#include "payments_world.hpp"
#include "prelude.hpp"

namespace {

/// Ten payments in each of three partitions, of which retention has removed the first two.
struct Begun {
  Begun() : world(3) {
    world.produce_to_each_partition(10);
    for (int p = 0; p < 3; ++p)
      world.broker().delete_records(world.topic(), p, 2);
  }
  std::string bases() const {
    return world.value(
        "SELECT string_agg(base_offset::text, ' ' ORDER BY partition)"
        "  FROM pawl.processed_kafka_offsets");
  }
  std::string applied() const {
    return world.value(
        "SELECT string_agg(applied_count::text, ' ' ORDER BY partition)"
        "  FROM pawl.processed_kafka_offsets");
  }
  PaymentsWorld world;
};

}  // namespace

TEST_CASE("a group that consumed before is taken over at its committed offsets, once") {
  Begun begun;
  auto& world = begun.world;
  world.broker().commit_offsets(world.group(), world.topic(), {{0, 7}, {1, 10}});
  world.drain();
  // Partition 2 has no committed offset: its log's start.
  REQUIRE(begun.bases() == "7 10 2");
  REQUIRE(begun.applied() == "3 0 8");
  // From now on PostgreSQL counts, whatever Kafka says.
  world.broker().commit_offsets(world.group(), world.topic(), {{0, 3}, {1, 3}, {2, 3}});
  world.drain();
  REQUIRE(begun.applied() == "3 0 8");
  REQUIRE(world.number(
              "SELECT count(*) FROM pawl.consumer_topics WHERE start_policy = 'committed'") == 1);
}

TEST_CASE("start = earliest begins at the log's start, whatever the group committed") {
  Begun begun;
  auto& world = begun.world;
  world.set_kafka_options("start = \"earliest\"");
  world.broker().commit_offsets(world.group(), world.topic(), {{0, 7}});
  world.drain();
  REQUIRE(begun.bases() == "2 2 2");
  REQUIRE(begun.applied() == "8 8 8");
}

TEST_CASE("start = latest begins with what comes after first contact") {
  Begun begun;
  auto& world = begun.world;
  world.set_kafka_options("start = \"latest\"");
  world.drain();
  REQUIRE(begun.bases() == "10 10 10");
  REQUIRE(begun.applied() == "0 0 0");
  world.produce_to_each_partition(4);
  world.drain();
  REQUIRE(begun.applied() == "4 4 4");
}

TEST_CASE(
    "start at a time begins with the first message at or after it; where there is none, at the "
    "end") {
  PaymentsWorld world(2);
  // What is older than a week would be gone at once.
  world.broker().set_topic_config(world.topic(), {{"retention.ms", "-1"}});
  pawl::testing::KafkaProducer producer(world.broker().bootstrap());
  // 2026-01-31T00:00:00Z
  constexpr std::int64_t kMidnight = 1'769'817'600'000;
  int id = 0;
  const auto send = [&](int partition, std::int64_t at) {
    pawl::testing::Record record;
    record.value = R"({"account":"acc-1","amount":1})";
    record.headers = {{"event-id", fmt::format("at-{}", id++)}};
    record.partition = partition;
    record.timestamp_ms = at;
    producer.send(world.topic(), record);
  };
  for (const auto offset : {-2000, -1, 0, 1000})
    send(0, kMidnight + offset);
  send(1, kMidnight - 5000);
  producer.flush();
  world.set_kafka_options("start = 2026-01-31T00:00:00Z");
  world.drain();
  REQUIRE(
      world.value("SELECT string_agg(base_offset || ' ' || applied_count, ', ' ORDER BY partition)"
                  "  FROM pawl.processed_kafka_offsets") == "2 2, 1 0");
}

TEST_CASE("start = halt waits for an operator, and says so") {
  Begun begun;
  auto& world = begun.world;
  world.set_kafka_options("start = \"halt\"");
  const auto process = world.start({.arguments = {"--drain"}});
  const auto status = process->wait(60s);
  INFO(process->output());
  REQUIRE(status.code == 4);
  REQUIRE(process->output().find("kafka.start = \"halt\"") != std::string::npos);
  REQUIRE(process->output().find("pawl offsets set") != std::string::npos);
  REQUIRE(world.number("SELECT count(*) FROM ledger") == 0);
}

TEST_CASE("processes that meet a topic at once begin at one resolution, for all its partitions") {
  const auto* start = GENERATE("earliest", "latest");
  INFO(start);
  PaymentsWorld world(16);
  world.set_kafka_options(fmt::format("start = \"{}\"\nsession_timeout = \"3s\"\n", start));
  world.produce_to_each_partition(5);
  GroupOfProcesses group(world);
  for (int i = 0; i < 3; ++i)
    group.join();
  // The end moves while they ask for it.
  pawl::testing::wait_until(
      [&] {
        world.produce_to_each_partition(1);
        return world.number("SELECT count(*) FROM pawl.processed_kafka_offsets") > 0;
      },
      40s, "first contact");
  world.produce_to_each_partition(5);
  // One transaction made all rows; each partition goes on from there to its end.
  REQUIRE(world.number("SELECT count(*) FROM pawl.processed_kafka_offsets") == 16);
  REQUIRE(world.number(
              "SELECT count(*) FROM pawl.offset_history WHERE action = 'first assignment'") == 16);
  const auto high = world.broker().watermarks(world.topic(), 0).high;
  pawl::testing::wait_until(
      [&] {
        return world.number(fmt::format("SELECT count(*) FROM pawl.processed_kafka_offsets WHERE "
                                        "last_processed_offset = {}",
                                        high - 1)) == 16;
      },
      30s, "all partitions at their ends\n" + group.problems());
  REQUIRE(world.number("SELECT count(*) FROM pawl.processed_kafka_offsets"
                       " WHERE applied_count <> last_processed_offset + 1 - base_offset") == 0);
  if (std::string_view(start) == "earliest")
    REQUIRE(world.imbalance() == "");
  group.leave_all();
}
