// Whether Kafka's records are there when a partition's worker has time for them. What is slow here
// by rest and not by work would need many times the deadlines: about a second for each MiB.
#include <catch2/catch_test_macros.hpp>

#include <fmt/format.h>

#include <string>

#include "payments_world.hpp"
#include "process_watch.hpp"

using namespace std::chrono_literals;
using pawl::test::PaymentsWorld;
using pawl::test::ShowOnFailure;

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
