#include "engine/first_positions.hpp"

#include "ledger/topic_patterns.hpp"

#include "prelude.hpp"

using namespace pawl::engine;
using namespace pawl::ledger;

namespace {

const OtherConsumer kFirst{"main", "payments", {{0, 41}, {1, -1}}};
const OtherConsumer kSecond{"main", "audit", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}};

pawl::Options options(Start start, std::vector<std::string> beside = {}) {
  pawl::Options options;
  options.kafka.cluster = "main";
  options.kafka.group = "new";
  options.kafka.start = start;
  options.kafka.start_beside = std::move(beside);
  return options;
}

std::optional<std::string> refused(const pawl::Options& options, const std::string& topic,
                                   const std::vector<pawl::ledger::OtherConsumer>& others) {
  return pawl::engine::refuse_beside(options.kafka, options.invocation, topic, others);
}

}  // namespace

TEST_CASE("another consumer is described by its name and where it stands") {
  CHECK(describe(kFirst) == "main/payments ([0] up to offset 41, [1] nothing yet)");
  CHECK(describe(kSecond) ==
        "main/audit ([0] up to offset 1, [1] up to offset 2, [2] up to offset 3, and 2 more)");
}

TEST_CASE("what would do again what another consumer did is refused until all of them are named") {
  const auto start = GENERATE(Start::kCommitted, Start::kEarliest, Start::kTimestamp);
  CHECK(!refused(options(start), "t", {}));
  CHECK(!refused(options(start, {"payments"}), "t", {kFirst}));
  CHECK(!refused(options(start, {"main/audit", "payments"}), "t", {kFirst, kSecond}));
  CHECK(refused(options(start, {"other/payments", "Payments", "main"}), "t", {kFirst}));
  const auto both = refused(options(start), "t", {kFirst, kSecond});
  REQUIRE(both);
  CHECK(both->find(R"(kafka.start_beside = ["main/payments", "main/audit"])") != std::string::npos);
  const auto one = refused(options(start, {"payments"}), "t", {kFirst, kSecond});
  REQUIRE(one);
  CHECK(one->find("main/payments") == std::string::npos);
}

TEST_CASE("what begins behind what there is, or nowhere, repeats nothing") {
  CHECK(!refused(options(Start::kLatest), "t", {kFirst}));
  CHECK(!refused(options(Start::kHalt), "t", {kFirst}));
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
    CHECK(first_start(options(row.start).kafka, row.later).start == row.begins);

  const FirstTopics first{{"^a", {"a-1", "a-2"}}, {"^b", {}}};
  CHECK_FALSE(came_later(first, "^a", "a-1"));
  CHECK(came_later(first, "^a", "a-3"));
  CHECK(came_later(first, "^b", "b"));
  CHECK_FALSE(came_later(first, "named", "named"));
  CHECK_FALSE(came_later(first, "", "other"));
}
