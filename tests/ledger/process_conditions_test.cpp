#include "ledger/process_conditions.hpp"

#include "prelude.hpp"

using pawl::Condition;
using pawl::ledger::ProcessCondition;

namespace {

ProcessCondition of(const std::string& owner, Condition::Kind kind, const std::string& what,
                    int since, std::int64_t messages) {
  Condition condition;
  condition.kind = kind;
  condition.subject = what;
  condition.since = pawl::Timestamp(std::chrono::milliseconds(since));
  condition.messages = messages;
  return {owner, condition};
}

}  // namespace

TEST_CASE(
    "what several processes wait for is one condition, since the earliest, with all messages") {
  using Kind = Condition::Kind;
  CHECK(pawl::ledger::shared_conditions({}).empty());
  const auto shared = pawl::ledger::shared_conditions({
      of("a", Kind::kPartitionBlocked, "x", 5, 1),
      of("a", Kind::kRemoteServiceUnreachable, "x", 6, 2),
      of("b", Kind::kRemoteServiceUnreachable, "x", 4, 3),
      of("b", Kind::kRemoteServiceUnreachable, "y", 7, 4),
  });
  REQUIRE(shared.size() == 3);
  CHECK(shared[0].condition == of("", Kind::kRemoteServiceUnreachable, "x", 4, 5).condition);
  CHECK(shared[0].owners == std::vector<std::string>{"a", "b"});
  CHECK(shared[1].condition == of("", Kind::kPartitionBlocked, "x", 5, 1).condition);
  CHECK(shared[2].condition == of("", Kind::kRemoteServiceUnreachable, "y", 7, 4).condition);
}

TEST_CASE("what lasts for one process lasts") {
  auto young = of("a", Condition::Kind::kPartitionBlocked, "x", 5, 1);
  young.condition.lasting = false;
  CHECK_FALSE(pawl::ledger::shared_conditions({young}).front().condition.lasting);
  const auto old = of("b", Condition::Kind::kPartitionBlocked, "x", 4, 1);
  CHECK(pawl::ledger::shared_conditions({young, old}).front().condition.lasting);
}

TEST_CASE("partitions that wait for a lock are those of the conditions of that kind") {
  using Kind = Condition::Kind;
  auto first = of("a", Kind::kPartitionBlocked, "payments[7]", 5, 1);
  first.condition.topic = "payments";
  first.condition.partition = 7;
  const auto other = of("a", Kind::kRemoteServiceUnreachable, "https://api.example", 5, 1);
  const auto shared = pawl::ledger::shared_conditions({first, other});
  CHECK(pawl::ledger::blocked_partitions(shared) ==
        std::set<pawl::TopicPartition>{{"payments", 7}});
  CHECK(pawl::ledger::blocked_partitions({}).empty());
}
