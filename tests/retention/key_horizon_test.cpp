#include "retention/key_horizon.hpp"

#include "kafka/answers.hpp"
#include "prelude.hpp"

using pawl::cli::KeyHorizon;
using Offsets = std::map<TopicPartition, std::int64_t>;

namespace {

const TopicPartition kZero{"payments", 0};
const TopicPartition kOne{"payments", 1};

}  // namespace

TEST_CASE("a partition goes back as far as Kafka says that its messages are recognised") {
  KeyHorizon horizon(pawl::ledger::Instant{});
  horizon.learn({kZero, kOne}, {{kZero, 7}, {kOne, 0}});
  CHECK(horizon.refusal(kZero, 6));
  CHECK(!horizon.refusal(kZero, 7));
  CHECK(!horizon.refusal(kOne, 0));
}

TEST_CASE("where Kafka does not say from where on messages are recognised nothing goes back") {
  KeyHorizon horizon(pawl::ledger::Instant{});
  CHECK_THROWS_AS(horizon.learn({kZero, kOne}, {{kZero, 7}}), pawl::kafka::KafkaError);
  CHECK_THROWS_AS(horizon.learn({kZero}, {}), pawl::kafka::KafkaError);
}

TEST_CASE("a time behind the last record is the log's end, and nothing where Kafka tells none") {
  CHECK(pawl::kafka::or_ends({{kZero, 3}, {kOne, -1}}, {{kOne, 9}}) ==
        Offsets{{kZero, 3}, {kOne, 9}});
  // The partition's leader moved between the two questions.
  CHECK(pawl::kafka::or_ends({{kZero, 3}, {kOne, -1}}, {}) == Offsets{{kZero, 3}});
}
