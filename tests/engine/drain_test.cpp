#include "engine/drain.hpp"

#include "prelude.hpp"

using namespace pawl::engine;

namespace {

const TopicPartition kFirst{"payments", 0};
const TopicPartition kSecond{"payments", 1};

DrainView view(std::int64_t reached, std::optional<std::int64_t> goal) {
  DrainView view;
  view.acquired = true;
  view.durable = true;
  view.reached = reached;
  view.goal = goal;
  return view;
}

}  // namespace

TEST_CASE("draining goes to the end at its start, whatever is written later") {
  DrainGoal goal({kFirst}, {{kFirst, 7}});
  CHECK(goal.of(kFirst, 7) == 7);
  CHECK(goal.of(kFirst, 100) == 7);
}

TEST_CASE("of a partition without leader at the start the first end that is told counts") {
  DrainGoal goal({kFirst, kSecond}, {{kFirst, 7}});
  CHECK(goal.of(kSecond, -1) == std::nullopt);
  CHECK(goal.of(kSecond, 5) == 5);
  CHECK(goal.of(kSecond, 9) == 5);
}

TEST_CASE("a partition that was added after the start is not waited for") {
  DrainGoal goal({kFirst}, {{kFirst, 7}});
  CHECK(goal.of(kSecond, 50) == 0);
}

TEST_CASE("a topic is missing once no answer for five seconds has had it") {
  using Names = std::vector<std::string>;
  struct Answer {
    int at;  // in seconds
    Names missing;
    Names overdue;
  };
  struct Row {
    const char* what;
    std::vector<Answer> answers;
  };
  const auto row = GENERATE(values<Row>({
      {"it never appears", {{0, {"a"}, {}}, {4, {"a"}, {}}, {5, {"a"}, {"a"}}}},
      {"of several all are named, in their order",
       {{0, {"b", "a"}, {}}, {9, {"b", "a"}, {"b", "a"}}}},
      {"it appears in time", {{0, {"a"}, {}}, {4, {}, {}}, {9, {}, {}}}},
      {"one appears in time, the other does not",
       {{0, {"a", "b"}, {}}, {4, {"b"}, {}}, {5, {"b"}, {"b"}}}},
      // None of them is missing in an answer that does not come.
      {"Kafka is away meanwhile",
       {{0, {"a"}, {}}, {4, {}, {}}, {8, {"a"}, {}}, {12, {"a"}, {}}, {13, {"a"}, {"a"}}}},
      {"one is deleted later", {{0, {"a"}, {}}, {5, {"a", "b"}, {"a"}}}},
  }));
  CAPTURE(row.what);
  MissingTopics topics(std::chrono::seconds(5));
  for (const auto& answer : row.answers) {
    CAPTURE(answer.at);
    const MissingTopics::Clock::time_point now{std::chrono::seconds(1000 + answer.at)};
    CHECK(topics.overdue(answer.missing, now) == answer.overdue);
  }
  CHECK(missing_topics_text({"a"}) ==
        "topic a does not exist in Kafka, so the topic cannot be drained. Create it, or fix the "
        "topics of the handlers");
  CHECK(missing_topics_text({"b", "a"}) ==
        "topics b, a do not exist in Kafka, so the topics cannot be drained. Create them, or fix "
        "the topics of the handlers");
}

TEST_CASE("a partition is drained at its goal, left behind when it stands before it") {
  CHECK(judge(view(7, 7)) == Drained::kDone);
  CHECK(judge(view(9, 7)) == Drained::kDone);
  CHECK(judge(view(6, 7)) == Drained::kNotYet);
  CHECK(judge(view(0, std::nullopt)) == Drained::kNotYet);

  auto not_acquired = view(7, 7);
  not_acquired.acquired = false;
  CHECK(judge(not_acquired) == Drained::kNotYet);
  auto not_on_disk = view(7, 7);
  not_on_disk.durable = false;
  CHECK(judge(not_on_disk) == Drained::kNotYet);

  auto paused = view(6, 7);
  paused.paused = true;
  CHECK(judge(paused) == Drained::kLeftBehind);
  CHECK(left_behind_text(kSecond, paused) == "payments[1] is paused before offset 6 of 7");
  paused.reached = 7;
  CHECK(judge(paused) == Drained::kDone);
  paused.goal.reset();
  CHECK(judge(paused) == Drained::kLeftBehind);

  auto halted = view(6, 7);
  halted.halted = true;
  CHECK(judge(halted) == Drained::kLeftBehind);
  CHECK(left_behind_text(kFirst, halted) == "payments[0] is halted before offset 6 of 7");
  halted.reached = -1;
  CHECK(left_behind_text(kFirst, halted) == "payments[0] is halted before its first offset");
}

TEST_CASE("a partition that was taken away is judged by its row") {
  pawl::ledger::RegisterRow row;
  row.partition = kFirst;
  row.stored = pawl::ledger::Position::behind(6);
  CHECK(judge(view_of(row, 7)) == Drained::kDone);
  CHECK(judge(view_of(row, 8)) == Drained::kNotYet);
  CHECK(judge(view_of(row, std::nullopt)) == Drained::kNotYet);
  row.state = pawl::ledger::PartitionState::kPaused;
  CHECK(judge(view_of(row, 7)) == Drained::kDone);
  CHECK(judge(view_of(row, 8)) == Drained::kLeftBehind);
  CHECK(left_behind_text(kFirst, view_of(row, 8)) == "payments[0] is paused before offset 7 of 8");
  row.state = pawl::ledger::PartitionState::kHalted;
  CHECK(judge(view_of(row, 7)) == Drained::kLeftBehind);
}
