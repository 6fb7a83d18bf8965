// What a question to Kafka does while no broker is there.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <pawl/testing/kafka_reader.hpp>

#include "free_port.hpp"
#include "kafka/client.hpp"
#include "prelude.hpp"
#include "testing/kafka_handles.hpp"

namespace {

std::atomic<int> connections{0};

std::unique_ptr<pawl::kafka::Client> client_of(const pawl::testing::KafkaBroker& broker) {
  pawl::KafkaOptions options;
  options.bootstrap_servers = broker.bootstrap();
  options.group = "asking";
  return std::make_unique<pawl::kafka::Client>(options,
                                               [](int, const std::string&, const std::string&) {});
}

}  // namespace

// Stands before libc's in this program, librdkafka included.
extern "C" int connect(int socket, const sockaddr* address, socklen_t size) {
  ++connections;
  return static_cast<int>(::syscall(SYS_connect, socket, address, size));
}

// Within three seconds librdkafka connects some dozens of times by its back-off. While an admin
// request waits for a broker it is thousands.
TEST_CASE("a question to a Kafka that is away does not connect without a pause") {
  pawl::testing::KafkaBroker broker;
  const std::string topic = "asked-about";
  broker.create_topic(topic, 1);
  const auto client = client_of(broker);
  REQUIRE(client->describe({topic}, 60s).contains(topic));
  REQUIRE(client->log_ranges({{topic, 0}}, 60s).size() == 1);

  broker.kill();
  connections = 0;
  CHECK_THROWS_AS(client->describe({topic}, 3s), pawl::kafka::KafkaError);
  CHECK_THROWS_AS(client->log_ranges({{topic, 0}}, 3s), pawl::kafka::KafkaError);
  CHECK(connections > 0);
  CHECK(connections < 1000);
}

// Its controller fences a broker that was stopped, which then tells of no broker at all for
// a moment.
TEST_CASE("who asked a broker while it was fenced finds it again") {
  pawl::testing::KafkaBroker broker(
      {.settings = {"broker.session.timeout.ms=1000", "broker.heartbeat.interval.ms=100"}});
  const std::string topic = "asked-about";
  broker.create_topic(topic, 1);
  const auto client = client_of(broker);
  REQUIRE(client->describe({topic}, 60s).contains(topic));
  for (int round = 0; round < 5; ++round) {
    INFO("round " << round);
    broker.freeze();
    CHECK_THROWS_AS(client->describe({topic}, 2s), pawl::kafka::KafkaError);
    broker.thaw();
    pawl::testing::wait_until(
        [&] {
          try {
            return client->describe({topic}, 200ms).contains(topic);
          } catch (const pawl::kafka::KafkaError&) {
            return false;
          }
        },
        60s, "an answer");
  }
}

// Fails where librdkafka is built without its atomics: it does not notice then that all brokers are
// down. pawl's own clients name the bootstrap servers again; a user's, and those of fixtures, do
// not.
TEST_CASE("a client that knows no broker any more asks the bootstrap servers again") {
  pawl::testing::KafkaBroker broker;
  const auto port = free_port();
  const auto client =
      make_client(RD_KAFKA_PRODUCER, fmt::format("{},127.0.0.1:{}", broker.bootstrap(), port), {});
  const auto responds = [&client] {
    const rd_kafka_metadata_t* found = nullptr;
    const auto error = rd_kafka_metadata(client.get(), 0, nullptr, &found, 200);
    const MetadataHandle metadata{found};
    return error == RD_KAFKA_RESP_ERR_NO_ERROR;
  };
  pawl::testing::wait_until(responds, 60s, "an answer");

  broker.move_to(port);
  pawl::testing::wait_until(responds, 60s, "an answer from the new address");
}

// Depends on scripts/lib/librdkafka.patch: the coordinator keeps its node id.
TEST_CASE("a transactional producer goes on with a Kafka that is back under another address") {
  pawl::testing::KafkaBroker broker;
  const std::string topic = "moved";
  broker.create_topic(topic, 1);
  const auto port = free_port();
  pawl::testing::KafkaProducer producer{fmt::format("{},127.0.0.1:{}", broker.bootstrap(), port),
                                        "mover"};
  const auto publish = [&](const std::string& value) {
    producer.begin();
    producer.send(topic, {.value = value});
    producer.commit();
  };
  publish("before");
  broker.move_to(port);
  publish("after");
  std::vector<std::string> committed;
  for (const auto& record : pawl::testing::read_topic(
           broker.bootstrap(), topic, pawl::testing::ReadIsolation::kReadCommitted, 60s))
    committed.push_back(record.value.value());
  CHECK(committed == std::vector<std::string>{"before", "after"});
}
