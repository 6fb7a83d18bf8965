// Whether Kafka's records are there when a partition's worker has time for them. What is slow here
// by rest and not by work would need many times the deadlines: about a second for each MiB.
#include <fmt/format.h>

#include "payments_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// `count` payments of `bytes` to one partition.
void produce_padded(PaymentsWorld& world, int partition, int count, std::size_t bytes) {
  const std::string padding(bytes, 'x');
  // Kafka delivers whole batches, however little is asked for.
  pawl::testing::KafkaProducer producer(world.broker().bootstrap(), "",
                                        {{"batch.num.messages", "1"}});
  for (int i = 0; i < count; ++i) {
    pawl::testing::Record record;
    record.value = fmt::format(R"({{"account":"acc-1","amount":1,"padding":"{}"}})", padding);
    record.headers = {{"event-id", fmt::format("padded-{}-{}", partition, i)}};
    record.partition = partition;
    producer.send(world.topic(), record);
  }
  producer.flush(180s);
}

/// So much slower than Kafka that whatever is fetched into is full, and so much faster than rests
/// of a second that these decide where there are any.
void take_for_each(PaymentsWorld& world, const char* seconds) {
  world.use_handler(fmt::format(R"toml(sql = [
  "INSERT INTO ledger (event_id, account, amount) VALUES ({{header:event-id}}, {{/account}}, {{/amount}}::bigint)",
  "SELECT pg_sleep({})",
])toml",
                                seconds));
  world.set("consumer.durability=replayable");
}

constexpr auto kDeadline = 150s;

/// Payments of about these sizes in turn, to all partitions in turn.
void produce_mixed(PaymentsWorld& world, int partitions, int count, int burst,
                   const std::vector<std::size_t>& sizes) {
  pawl::testing::KafkaProducer producer(world.broker().bootstrap(), "",
                                        {{"batch.num.messages", "8"}});
  for (int i = 0; i < count; ++i) {
    pawl::testing::Record record;
    record.value = fmt::format(R"({{"account":"acc-1","amount":1,"padding":"{}"}})",
                               std::string(sizes[static_cast<std::size_t>(i) % sizes.size()], 'x'));
    record.headers = {{"event-id", fmt::format("mixed-{}-{}", burst, i)}};
    record.partition = i % partitions;
    producer.send(world.topic(), record);
  }
  producer.flush(180s);
}

}  // namespace

// Fails, by its deadline, when a full buffer is looked at once a second: 300 MiB are 200 rests.
TEST_CASE("a partition of large messages is fetched as fast as it is processed") {
  PaymentsWorld world(1);
  take_for_each(world, "0.001");
  produce_padded(world, 0, 6000, 50 * 1024);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_processed(6000, kDeadline);
  CHECK(world.number("SELECT count(*) FROM ledger") == 6000);
}

// Fails, by its deadline, when each partition has an equal part of kafka.buffer: 10 KiB, a message
// or two for each of hundreds of rests.
TEST_CASE("one partition with a backlog among many uses what they leave of kafka.buffer") {
  PaymentsWorld world(200);
  take_for_each(world, "0.005");
  world.set("kafka.buffer=2MiB");
  produce_padded(world, 117, 1000, 8 * 1024);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  world.wait_until_processed(1000, kDeadline);
  CHECK(world.number("SELECT count(*) FROM ledger") == 1000);
}

// What waits in the intake's hand when its partition is resumed was fetched before, and would be
// taken for what comes next.
TEST_CASE("where kafka.buffer is full of large and small messages none is left out") {
  constexpr int kPartitions = 16;
  constexpr int kBursts = 30;
  constexpr int kBurst = 300;
  PaymentsWorld world(kPartitions);
  take_for_each(world, "0.0005");
  world.set("kafka.buffer=1MiB");
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  for (int burst = 1; burst <= kBursts; ++burst) {
    produce_mixed(world, kPartitions, kBurst, burst,
                  {700, 5 * 1024, 700, 60 * 1024, 700, 20 * 1024, 700});
    world.wait_until_processed(burst * kBurst, kDeadline);
  }
  CHECK(world.number("SELECT count(*) FROM ledger") == kBursts * kBurst);
}

// Fails, by its deadline, when what a partition has fetched keeps its room while nothing is tried.
TEST_CASE("partitions that halt leave kafka.buffer to the others") {
  constexpr int kPartitions = 15;
  constexpr int kEach = 40;
  PaymentsWorld world(kPartitions);
  world.execute(R"sql(
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF NEW.event_id NOT LIKE 'padded-0-%' THEN PERFORM 1 FROM missing; END IF;
        RETURN NEW;
      END $$)sql");
  world.execute(
      "CREATE TRIGGER refuse BEFORE INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION refuse()");
  world.set("kafka.buffer=1MiB");
  world.set("failures.program_error_retry=2s");
  for (int partition = 1; partition < kPartitions; ++partition)
    produce_padded(world, partition, kEach, 10 * 1024);
  const auto process = world.start();
  const ShowOnFailure show("consumer", *process);
  pawl::testing::wait_until(
      [&] {
        return world.number(
                   "SELECT count(*) FROM pawl.processed_kafka_offsets WHERE state = 'halted'") ==
               kPartitions - 1;
      },
      kDeadline, "all partitions but one to halt");
  produce_padded(world, 0, 500, 10 * 1024);
  world.wait_for_stored(0, 499);
  world.execute("CREATE TABLE missing ()");
  world.wait_until_processed(500 + (kPartitions - 1) * kEach, kDeadline);
  CHECK(world.number("SELECT count(*) FROM ledger") == 500 + (kPartitions - 1) * kEach);
}
