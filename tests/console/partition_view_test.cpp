#include "console/partition_view.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace pawl;
using namespace pawl::cli;
using ledger::PartitionState;

namespace {

/// Running, owned, at offset 41 since just now.
ledger::RegisterRow running() {
  ledger::RegisterRow row;
  row.partition = {"orders", 3};
  row.stored = ledger::Position::behind(41);
  row.owner = "host-1";
  row.released = false;
  return row;
}

}  // namespace

TEST_CASE("the most urgent of what is the matter with a partition") {
  struct Case {
    const char* what;
    std::function<void(ledger::RegisterRow&)> change;
    std::optional<std::int64_t> end_before;
    Concern concern;
  };
  const Case cases[] = {
      {"all is well", [](auto&) {}, 50, Concern::kNone},
      {"a minute is not more than a minute", [](auto& row) { row.since_update_ms = 60000; }, 50,
       Concern::kNone},
      {"nothing for a minute, for which a message has waited",
       [](auto& row) { row.since_update_ms = 60001; }, 43, Concern::kStalled},
      {"nothing for a minute, but whatever waits came meanwhile",
       [](auto& row) { row.since_update_ms = 300000; }, 42, Concern::kNone},
      {"nothing for a minute, and the log was cut below what is stored",
       [](auto& row) { row.since_update_ms = 60001; }, 0, Concern::kNone},
      {"nothing for a minute, and nobody knows what waits",
       [](auto& row) { row.since_update_ms = 60001; }, std::nullopt, Concern::kNone},
      {"a process ended with the next message in hand",
       [](auto& row) {
         row.since_update_ms = 60001;
         row.suspect = ledger::SuspectView{42, 1, true};
       },
       50, Concern::kProbation},
      {"attempts fail",
       [](auto& row) {
         row.suspect = ledger::SuspectView{42, 1, true};
         row.attempts = 2;
       },
       50, Concern::kRetrying},
      {"attempts of one beside others fail",
       [](auto& row) {
         row.since_update_ms = 60001;
         row.ahead.trying = 1;
       },
       50, Concern::kRetrying},
      {"one beside others would be tried again, were it not paused",
       [](auto& row) {
         row.state = PartitionState::kPaused;
         row.ahead.trying = 1;
       },
       50, Concern::kPaused},
      {"paused", [](auto& row) { row.state = PartitionState::kPaused; }, 50, Concern::kPaused},
      {"paused, and given back",
       [](auto& row) {
         row.state = PartitionState::kPaused;
         row.released = true;
       },
       50, Concern::kUnowned},
      {"its session is gone", [](auto& row) { row.session_gone = true; }, 50, Concern::kUnowned},
      {"halted without owner",
       [](auto& row) {
         row.state = PartitionState::kHalted;
         row.released = true;
       },
       0, Concern::kHalted},
  };
  for (const auto& [what, change, end_before, concern] : cases) {
    INFO(what);
    auto row = running();
    change(row);
    CHECK(std::string(to_string(concern_of(&row, end_before))) == to_string(concern));
  }
  CHECK(concern_of(nullptr, 50) == Concern::kUnowned);
}

TEST_CASE("the state of a partition is retrying whichever of its messages is tried again") {
  auto row = running();
  CHECK(state_text(row) == "running");
  row.ahead.trying = 1;
  CHECK(state_text(row) == "retrying");
  row.ahead.trying = 0;
  row.attempts = 1;
  CHECK(state_text(row) == "retrying");
  row.released = true;
  CHECK(state_text(row) == "unowned");
  row.state = ledger::PartitionState::kPaused;
  CHECK(state_text(row) == "paused");
}

TEST_CASE(
    "of several matters with one partition each counts, but stalled is one that has no other") {
  ConcernCounts counts;
  counts.add(nullptr, 50);
  auto row = running();
  row.since_update_ms = 60001;
  counts.add(&row, 50);
  row.suspect = ledger::SuspectView{42, 1, true};
  counts.add(&row, 50);
  row.attempts = 2;
  counts.add(&row, 50);
  row.state = PartitionState::kPaused;
  row.released = true;
  counts.add(&row, 50);
  CHECK(counts.unowned == 2);
  CHECK(counts.paused == 1);
  CHECK(counts.retrying == 1);
  CHECK(counts.stalled == 1);
  CHECK(counts.halted == 0);
  CHECK(counts.on_probation == 2);
}

TEST_CASE("names of partitions and messages are short, and partitions of a topic are ranges") {
  CHECK(name_of({"orders", 3}) == "orders[3]");
  CHECK(name_of({"orders", 3}, 341) == "orders[3]@341");
  CHECK(names_of({}) == "");
  CHECK(names_of({{"orders", 3}}) == "orders[3]");
  CHECK(names_of({{"orders", 5}, {"orders", 1}, {"orders", 0}, {"orders", 2}, {"a", 7}}) ==
        "a[7], orders[0-2,5]");
}

TEST_CASE("an offset is that of the next message, and no owner is none") {
  auto row = running();
  CHECK(offset_text(row) == "42");
  CHECK(lag_of(&row, 50) == 8);
  CHECK(owner_text(row) == "host-1");
  row.session_gone = true;
  CHECK(owner_text(row) == "-");
  row.stored = ledger::Position();
  CHECK(offset_text(row) == "0");
  CHECK(short_owner("host:1021:397e8ab5") == "host:1021");
  CHECK(short_owner("host:1021") == "host:1021");
  CHECK(short_owner("") == "");
}
