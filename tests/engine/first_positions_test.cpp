#include "engine/first_positions.hpp"

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
