#include "engine/first_positions.hpp"

#include "engine/topic_directory.hpp"
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
  options.kafka.known_consumers = std::move(beside);
  return options;
}

std::optional<Halt> refused(const pawl::Options& options,
                            const std::vector<pawl::ledger::OtherConsumer>& others) {
  return pawl::engine::refuse_beside(options.kafka, others);
}

}  // namespace

TEST_CASE("another consumer is described by its name and where it stands") {
  CHECK(describe(kFirst) == "main/payments ([0] up to offset 41, [1] nothing yet)");
  CHECK(describe(kSecond) ==
        "main/audit ([0] up to offset 1, [1] up to offset 2, [2] up to offset 3, and 2 more)");
}

TEST_CASE("what would do again what another consumer did is refused until all of them are named") {
  const auto start = GENERATE(Start::kCommitted, Start::kEarliest, Start::kTimestamp);
  CHECK(!refused(options(start), {}));
  CHECK(!refused(options(start, {"payments"}), {kFirst}));
  CHECK(!refused(options(start, {"main/audit", "payments"}), {kFirst, kSecond}));
  CHECK(refused(options(start, {"other/payments", "Payments", "main"}), {kFirst}));
  const auto both = refused(options(start), {kFirst, kSecond});
  REQUIRE(both);
  CHECK(both->code == "topic_of_other_consumer");
  CHECK(both->parameter(halt_parameter::kConsumerNames) == R"("main/payments", "main/audit")");
  CHECK(both->parameter(halt_parameter::kConsumers) == describe(kFirst) + "; " + describe(kSecond));
  const auto one = refused(options(start, {"payments"}), {kFirst, kSecond});
  REQUIRE(one);
  CHECK(one->parameter(halt_parameter::kConsumerNames) == R"("main/audit")");
}

TEST_CASE("what begins behind what there is, or nowhere, repeats nothing") {
  CHECK(!refused(options(Start::kLatest), {kFirst}));
  CHECK(!refused(options(Start::kHalt), {kFirst}));
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
      {Start::kTimestamp, true, Start::kEarliest},  {Start::kHalt, true, Start::kHalt},
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

TEST_CASE("what came later than one pattern has not been there for the next one") {
  const FirstTopics met{{"^orders", {"orders.eu"}}, {"^pay", {}}};
  const std::vector<std::string> there{"orders.eu", "orders.fr", "refunds", "payments"};
  CHECK(there_from_the_first(there, met) == std::vector<std::string>{"orders.eu", "refunds"});
  CHECK(there_from_the_first(there, {}) == there);
}

TEST_CASE("a topic is followed until two answers in a row lack it") {
  std::vector<std::string> topics{"a"};
  auto missed = keep_missed(topics, {"a", "b"}, {});
  CHECK(topics == std::vector<std::string>{"a", "b"});
  CHECK(missed == std::set<std::string>{"b"});
  topics = {"a"};
  missed = keep_missed(topics, {"a", "b"}, missed);
  CHECK(topics == std::vector<std::string>{"a"});
  CHECK(missed.empty());
  topics = {"a", "b"};
  CHECK(keep_missed(topics, {"a", "b"}, {"b"}).empty());
}
