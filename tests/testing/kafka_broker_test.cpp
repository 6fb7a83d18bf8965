#include "prelude.hpp"

namespace {

void produce(const std::string& topic, int partition, int count) {
  KafkaProducer producer{KafkaBroker::shared().bootstrap()};
  for (int i = 0; i < count; ++i) {
    producer.send(
        topic,
        {.key = "k", .value = "v" + std::to_string(i), .headers = {}, .partition = partition});
  }
  producer.flush();
}

}  // namespace

TEST_CASE("topics are created, grow, and are deleted; a topic created again has another id") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("grows", 2);
  CHECK(broker.partition_count(topic) == 2);
  broker.add_partitions(topic, 5);
  CHECK(broker.partition_count(topic) == 5);
  CHECK_THROWS_AS(broker.create_topic(topic, 1), std::runtime_error);
  CHECK_THROWS_AS(broker.add_partitions(topic, 5), std::runtime_error);

  const auto first_id = broker.topic_id(topic);
  broker.delete_topic(topic);
  CHECK_THROWS_AS(broker.partition_count(topic), std::runtime_error);
  broker.create_topic(topic, 1);
  CHECK(broker.topic_id(topic) != first_id);
  CHECK(broker.topic_id(topic).size() == 22);
}

TEST_CASE("records are produced to their partition and deleted from its front") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("records", 2);
  produce(topic, 1, 10);
  CHECK(broker.watermarks(topic, 0).high == 0);
  CHECK(broker.watermarks(topic, 1).high == 10);
  broker.delete_records(topic, 1, 4);
  CHECK(broker.watermarks(topic, 1).low == 4);
  broker.delete_records(topic, 1, -1);
  CHECK(broker.watermarks(topic, 1).low == 10);
  CHECK_THROWS_AS(broker.delete_records(topic, 1, 99), std::runtime_error);
}

TEST_CASE("a topic's configuration decides what the broker keeps") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("retention", 1, {{"segment.bytes", "1048576"}});
  produce(topic, 0, 5);
  broker.set_topic_config(topic, {{"retention.ms", "1"}, {"segment.ms", "1"}});
  wait_until([&] { return broker.watermarks(topic, 0).low == 5; }, 30s, "retention to remove all");
  CHECK_THROWS_AS(broker.set_topic_config(topic, {{"retention.ms", "soon"}}), std::runtime_error);
}

TEST_CASE("transactions leave control records, and an open one holds back the stable end") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("transactions", 1);
  KafkaProducer producer{broker.bootstrap(), topic};
  producer.begin();
  producer.send(topic, {.key = {}, .value = "aborted"});
  producer.abort();
  producer.begin();
  producer.send(topic, {.key = {}, .value = "committed"});
  producer.commit();
  wait_until([&] { return broker.last_stable_offset(topic, 0) == 4; }, 60s,
             "two records and two control records");
  producer.begin();
  producer.send(topic, {.key = {}, .value = "open"});
  producer.flush();
  CHECK(broker.watermarks(topic, 0).high == 5);
  CHECK(broker.last_stable_offset(topic, 0) == 4);
  CHECK(read_topic(broker.bootstrap(), topic, ReadIsolation::kReadUncommitted).size() == 3);
  CHECK_THROWS_WITH(read_topic(broker.bootstrap(), topic, ReadIsolation::kReadCommitted, 1s),
                    ContainsSubstring("open transactions in " + topic + "[0] to finish"));
  producer.abort();
  wait_until([&] { return broker.last_stable_offset(topic, 0) == 6; }, 60s, "the abort's marker");
  CHECK(read_topic(broker.bootstrap(), topic).size() == 1);
}

TEST_CASE("committed offsets of a group are set and read") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("committed", 3);
  const std::string group = topic + "-group";
  CHECK(broker.committed_offsets(group, topic).empty());
  CHECK_THROWS_AS(broker.wait_for_committed(group, topic, 2, 5, 50ms), Timeout);
  broker.commit_offsets(group, topic, {{0, 7}, {2, 5}});
  broker.wait_for_committed(group, topic, 2, 5, 60s);
  const auto committed = broker.committed_offsets(group, topic);
  REQUIRE(committed.size() == 2);
  CHECK(committed.at(0).offset == 7);
  CHECK(committed.at(2).offset == 5);
  CHECK(broker.stable_members(group) == 0);
}

TEST_CASE("a message that the broker refuses fails the flush") {
  auto& broker = KafkaBroker::shared();
  const auto topic = broker.new_topic("small", 1, {{"max.message.bytes", "200"}});
  KafkaProducer producer{broker.bootstrap()};
  producer.send(topic, {.key = {}, .value = std::string(5000, 'x')});
  CHECK_THROWS_AS(producer.flush(), std::runtime_error);
  producer.send(topic, {.key = {}, .value = "fits"});
  producer.flush();
  CHECK(broker.watermarks(topic, 0).high == 1);
}

TEST_CASE("a broker keeps address and data when it is killed, stopped and started") {
  KafkaBroker broker;
  const auto bootstrap = broker.bootstrap();
  broker.create_topic("kept", 1);
  KafkaProducer producer{bootstrap};
  producer.send("kept", {.key = {}, .value = "before"});
  producer.flush();
  broker.kill();
  broker.kill();
  producer.send("kept", {.key = {}, .value = "meanwhile"});
  broker.start();
  CHECK(broker.bootstrap() == bootstrap);
  producer.flush();
  broker.restart();
  CHECK(broker.watermarks("kept", 0).high == 2);
}
