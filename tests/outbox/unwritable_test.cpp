#include "outbox/unwritable.hpp"

#include "kafka/produce.hpp"
#include "prelude.hpp"

using pawl::TopicPartition;
using pawl::engine::UnwritablePartitions;

namespace {

using Clock = UnwritablePartitions::Clock;
using Partitions = std::set<TopicPartition>;
using Place = UnwritablePartitions::Place;

const Clock::time_point kNow{1000h};
const TopicPartition kBad{"half", 1};
const TopicPartition kGood{"half", 0};
const TopicPartition kOther{"other", 0};

/// A key leads to the partition that it names.
UnwritablePartitions none() {
  return UnwritablePartitions([](const auto& key, std::int32_t) -> std::optional<std::int32_t> {
    return key ? std::optional(std::stoi(*key)) : std::nullopt;
  });
}

bool note(UnwritablePartitions& unwritable, const Partitions& undelivered, bool others_delivered,
          Clock::time_point now = kNow) {
  return unwritable.note({undelivered, others_delivered, "why"}, {{"half", 3}, {"other", 1}}, now);
}

}  // namespace

TEST_CASE("what a failed transaction leaves out of the next one") {
  struct Row {
    std::string what;
    std::vector<std::pair<Partitions, bool>> failures;  ///< undelivered, others delivered
    bool told;  ///< of the last one: the next transaction is another one
    Partitions left_out;
    bool due;  ///< one of them is tried alone at once
  };
  const auto row = GENERATE(values<Row>({
      {"nothing is known", {{{}, false}}, false, {}, false},
      {"all were delivered, and the commit failed", {{{}, true}}, false, {}, false},
      {"one of several", {{{kBad}, true}}, true, {kBad}, false},
      {"two of several", {{{kBad, kGood}, true}}, true, {kBad, kGood}, false},
      {"all, once: Kafka may be away", {{{kBad, kOther}, false}}, false, {}, false},
      {"all, twice",
       {{{kBad, kOther}, false}, {{kBad, kOther}, false}},
       true,
       {kBad, kOther},
       true},
      {"the only one, once", {{{kBad}, false}}, false, {}, false},
      {"the only one, twice", {{{kBad}, false}, {{kBad}, false}}, true, {kBad}, false},
      {"alone again", {{{kBad}, true}, {{kBad}, false}}, true, {kBad}, false},
      {"another one later", {{{kBad}, true}, {{kOther}, true}}, true, {kBad, kOther}, false},
  }));
  CAPTURE(row.what);
  auto unwritable = none();
  bool told = false;
  for (const auto& [undelivered, others_delivered] : row.failures)
    told = note(unwritable, undelivered, others_delivered);
  CHECK(told == row.told);
  CHECK(unwritable.size() == row.left_out.size());
  for (const auto& partition : {kBad, kGood, kOther}) {
    const auto key = std::to_string(partition.partition);
    CHECK(unwritable.place(partition.topic, key, 7) ==
          Place{row.left_out.contains(partition), std::nullopt});
  }
  CHECK(unwritable.due(kNow).has_value() == row.due);
}

TEST_CASE("a committed transaction between two failures shows that Kafka serves") {
  auto unwritable = none();
  CHECK_FALSE(note(unwritable, {kBad, kOther}, false));
  unwritable.committed();
  CHECK_FALSE(note(unwritable, {kBad, kOther}, false));
  CHECK(unwritable.empty());
}

TEST_CASE("a message without a key goes to a partition that can be written to") {
  auto unwritable = none();
  CHECK(unwritable.place("half", std::nullopt, 1) == Place{});
  note(unwritable, {kBad}, true);
  CHECK(unwritable.place("half", std::nullopt, 0) == Place{false, 0});
  CHECK(unwritable.place("half", std::nullopt, 1) == Place{false, 2});
  CHECK(unwritable.place("half", std::nullopt, 2) == Place{false, 2});
  CHECK(unwritable.place("other", std::nullopt, 1) == Place{});
  note(unwritable, {kGood, {"half", 2}}, true);
  CHECK(unwritable.place("half", std::nullopt, 1) == Place{true, std::nullopt});
}

TEST_CASE("a partition is tried later and later, and sooner where it had no leader") {
  auto unwritable = none();
  note(unwritable, {kBad}, true);
  CHECK_FALSE(unwritable.due(kNow + 9s));
  CHECK(unwritable.due(kNow + 10s) == kBad);
  // Whatever becomes of a try.
  unwritable.tried(kBad, kNow + 10s);
  CHECK_FALSE(unwritable.due(kNow + 29s));
  CHECK(unwritable.due(kNow + 30s) == kBad);
  note(unwritable, {kBad}, false, kNow + 10s);
  CHECK_FALSE(unwritable.due(kNow + 29s));
  for (int failure = 0; failure < 20; ++failure)
    note(unwritable, {kBad}, false, kNow);
  CHECK_FALSE(unwritable.due(kNow + 299s));
  CHECK(unwritable.due(kNow + 300s) == kBad);
  unwritable.has_no_leader(kBad, kNow);
  CHECK(unwritable.due(kNow + 5s) == kBad);
  CHECK(unwritable.text() == "half[1] (the partition has no leader)");
  CHECK(unwritable.leads_to(kBad, "half", "1"));
  CHECK_FALSE(unwritable.leads_to(kBad, "half", "0"));
  CHECK_FALSE(unwritable.leads_to(kBad, "half", std::nullopt));
  CHECK_FALSE(unwritable.leads_to(kBad, "other", "1"));
  // What has no key is tried as well, once nothing else is left for it.
  note(unwritable, {kGood, {"half", 2}}, true);
  CHECK(unwritable.leads_to(kBad, "half", std::nullopt));
  unwritable.writable(kGood);
  unwritable.writable({"half", 2});
  unwritable.writable(kBad);
  CHECK(unwritable.empty());
  CHECK_FALSE(unwritable.due(kNow + 1000h));
  CHECK(unwritable.text().empty());
}

TEST_CASE("which errors of a message are those of its partition") {
  using pawl::kafka::FailureReach;
  const auto [error, reach] = GENERATE(table<rd_kafka_resp_err_t, FailureReach>({
      {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, FailureReach::kPartition},
      {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, FailureReach::kPartition},
      {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, FailureReach::kPartition},
      {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, FailureReach::kPartition},
      {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, FailureReach::kPartition},
      {RD_KAFKA_RESP_ERR__PURGE_QUEUE, FailureReach::kUnknown},
      {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, FailureReach::kUnknown},
      {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, FailureReach::kProducer},
      {RD_KAFKA_RESP_ERR__FENCED, FailureReach::kProducer},
      {RD_KAFKA_RESP_ERR__FATAL, FailureReach::kProducer},
      {RD_KAFKA_RESP_ERR__TRANSPORT, FailureReach::kProducer},
      {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FailureReach::kProducer},
  }));
  CAPTURE(rd_kafka_err2name(error));
  CHECK(pawl::kafka::reach_of(error) == reach);
}

TEST_CASE("a key leads where librdkafka's partitioner of this name lets it") {
  // As the clients in Java do: murmur2 of "kafka" is 0xd067cf64.
  struct Row {
    std::string partitioner;
    std::optional<std::string> key;
    std::optional<std::int32_t> partition;
  };
  const auto row = GENERATE(values<Row>({
      {"", "kafka", 0x5067cf64 % 7},
      {"", std::nullopt, std::nullopt},
      {"murmur2_random", "kafka", 0x5067cf64 % 7},
      {"murmur2", "kafka", 0x5067cf64 % 7},
      {"random", "kafka", std::nullopt},
      {"consistent_random", "", std::nullopt},
      {"fnv1a_random", std::nullopt, std::nullopt},
      // CRC-32 of nothing is 0.
      {"consistent", std::nullopt, 0},
  }));
  CAPTURE(row.partitioner, row.key.value_or("no key"));
  pawl::KafkaOptions options;
  if (!row.partitioner.empty())
    options.librdkafka["partitioner"] = row.partitioner;
  CHECK(pawl::kafka::partition_of_key(options, row.key, 7) == row.partition);
}
