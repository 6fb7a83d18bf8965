#include "engine/coverage.hpp"

#include "prelude.hpp"

using pawl::TopicPartition;
using pawl::engine::Coverage;
using pawl::engine::may_be_left_out;

namespace {

using Set = std::set<TopicPartition>;
using List = std::vector<TopicPartition>;

const TopicPartition kA{"a", 0};
const TopicPartition kB{"b", 0};

}  // namespace

TEST_CASE("what two looks in a row miss is returned once, for as long as it stays away") {
  Coverage coverage;
  CHECK(coverage.look({kA, kB}, Set{kA}).empty());
  CHECK_FALSE(coverage.settled());
  CHECK(coverage.look({kA, kB}, Set{kA}) == List{kB});
  CHECK_FALSE(coverage.settled());
  CHECK(coverage.look({kA, kB}, Set{kA}).empty());
  CHECK(coverage.settled());
  // Assigned at last, and left out again.
  CHECK(coverage.look({kA, kB}, Set{kA, kB}).empty());
  CHECK(coverage.settled());
  CHECK(coverage.look({kA, kB}, Set{kA}).empty());
  CHECK(coverage.look({kA, kB}, Set{kA}) == List{kB});
}

TEST_CASE("between two assignments nothing is missing yet, and nothing is settled") {
  Coverage coverage;
  CHECK(coverage.look({kA}, Set{}).empty());
  CHECK(coverage.look({kA}, std::nullopt).empty());
  CHECK_FALSE(coverage.settled());
  CHECK(coverage.look({kA}, Set{}).empty());
  CHECK(coverage.look({kA}, Set{}) == List{kA});
}

TEST_CASE("others' topics are not missed") {
  Coverage coverage;
  CHECK(coverage.look({kA}, Set{kA, kB}).empty());
  CHECK(coverage.settled());
  CHECK(coverage.look({}, Set{}).empty());
  CHECK(coverage.settled());
}

TEST_CASE("only static members of the classic protocol may be left out") {
  pawl::KafkaOptions options;
  options.group_protocol = pawl::GroupProtocol::kClassic;
  CHECK_FALSE(may_be_left_out(options));
  options.group_instance_id = "payments-1";
  CHECK(may_be_left_out(options));
  options.assignment = pawl::Assignment::kManual;
  CHECK_FALSE(may_be_left_out(options));
  options.assignment = pawl::Assignment::kGroup;
  options.group_protocol = pawl::GroupProtocol::kConsumer;
  CHECK_FALSE(may_be_left_out(options));
}
