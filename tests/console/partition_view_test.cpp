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
    std::optional<std::int64_t> lag;
    Concern concern;
  };
  const Case cases[] = {
      {"all is well", [](auto&) {}, 8, Concern::kNone},
      {"a minute is not more than a minute", [](auto& row) { row.since_update_ms = 60000; }, 8,
       Concern::kNone},
      {"nothing for a minute", [](auto& row) { row.since_update_ms = 60001; }, 8,
       Concern::kStalled},
      {"nothing for a minute, and nothing is left", [](auto& row) { row.since_update_ms = 60001; },
       0, Concern::kNone},
      {"nothing for a minute, and nobody knows what is left",
       [](auto& row) { row.since_update_ms = 60001; }, std::nullopt, Concern::kNone},
      {"a process ended with the next message in hand",
       [](auto& row) {
         row.since_update_ms = 60001;
         row.suspect = ledger::SuspectView{42, 1, true};
       },
       8, Concern::kProbation},
      {"attempts fail",
       [](auto& row) {
         row.suspect = ledger::SuspectView{42, 1, true};
         row.attempts = 2;
       },
       8, Concern::kRetrying},
      {"paused", [](auto& row) { row.state = PartitionState::kPaused; }, 8, Concern::kPaused},
      {"paused, and given back",
       [](auto& row) {
         row.state = PartitionState::kPaused;
         row.released = true;
       },
       8, Concern::kUnowned},
      {"its session is gone", [](auto& row) { row.session_gone = true; }, 8, Concern::kUnowned},
      {"halted without owner",
       [](auto& row) {
         row.state = PartitionState::kHalted;
         row.released = true;
       },
       0, Concern::kHalted},
  };
  for (const auto& [what, change, lag, concern] : cases) {
    INFO(what);
    auto row = running();
    change(row);
    CHECK(std::string(to_string(concern_of(&row, lag))) == to_string(concern));
  }
  CHECK(concern_of(nullptr, 8) == Concern::kUnowned);
}

TEST_CASE("of several matters with one partition each counts") {
  ConcernCounts counts;
  counts.add(nullptr, 8);
  auto row = running();
  row.since_update_ms = 60001;
  row.attempts = 2;
  counts.add(&row, 8);
  row.state = PartitionState::kPaused;
  row.released = true;
  counts.add(&row, 8);
  CHECK(counts.unowned == 2);
  CHECK(counts.paused == 1);
  CHECK(counts.retrying == 1);
  CHECK(counts.stalled == 1);
  CHECK(counts.halted == 0);
  CHECK(counts.on_probation == 0);
}
