#include "engine/first_positions.hpp"

#include "ledger/topic_patterns.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using namespace pawl::ledger;

namespace {

const OtherConsumer kFirst{"main", "payments", {{0, 41}, {1, -1}}};
const OtherConsumer kSecond{"main", "audit", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}};

pawl::KafkaOptions options(Start start, std::vector<std::string> beside = {}) {
  pawl::KafkaOptions options;
  options.cluster = "main";
  options.group = "new";
  options.start = start;
  options.start_beside = std::move(beside);
  return options;
}

}  // namespace

TEST_CASE("another consumer is described by its name and where it stands") {
  CHECK(describe(kFirst) == "main/payments ([0] up to offset 41, [1] nothing yet)");
  CHECK(describe(kSecond) ==
        "main/audit ([0] up to offset 1, [1] up to offset 2, [2] up to offset 3, and 2 more)");
}

TEST_CASE("what would do again what another consumer did is refused until all of them are named") {
  const auto start = GENERATE(Start::kCommitted, Start::kEarliest, Start::kTimestamp);
  CHECK(!refuse_beside(options(start), "t", {}));
  CHECK(!refuse_beside(options(start, {"payments"}), "t", {kFirst}));
  CHECK(!refuse_beside(options(start, {"main/audit", "payments"}), "t", {kFirst, kSecond}));
  CHECK(refuse_beside(options(start, {"other/payments", "Payments", "main"}), "t", {kFirst}));
  const auto both = refuse_beside(options(start), "t", {kFirst, kSecond});
  REQUIRE(both);
  CHECK(both->find(R"(kafka.start_beside = ["main/payments", "main/audit"])") != std::string::npos);
  const auto one = refuse_beside(options(start, {"payments"}), "t", {kFirst, kSecond});
  REQUIRE(one);
  CHECK(one->find("main/payments") == std::string::npos);
}

TEST_CASE("what begins behind what there is, or nowhere, repeats nothing") {
  CHECK(!refuse_beside(options(Start::kLatest), "t", {kFirst}));
  CHECK(!refuse_beside(options(Start::kHalt), "t", {kFirst}));
}

TEST_CASE("what came later than its pattern begins at the log's start rather than at its end") {
  struct Row {
    Start start;
    bool later;
    Start begins;
  };
  const std::vector<Row> rows{
      {Start::kLatest, true, Start::kEarliest},     {Start::kLatest, false, Start::kLatest},
      {Start::kCommitted, true, Start::kCommitted}, {Start::kEarliest, true, Start::kEarliest},
      {Start::kTimestamp, true, Start::kTimestamp}, {Start::kHalt, true, Start::kHalt},
  };
  for (const auto& row : rows)
    CHECK(first_start(options(row.start), row.later).start == row.begins);

  const FirstTopics first{{"^a", {"a-1", "a-2"}}, {"^b", {}}};
  CHECK_FALSE(came_later(first, "^a", "a-1"));
  CHECK(came_later(first, "^a", "a-3"));
  CHECK(came_later(first, "^b", "b"));
  CHECK_FALSE(came_later(first, "named", "named"));
  CHECK_FALSE(came_later(first, "", "other"));
}
