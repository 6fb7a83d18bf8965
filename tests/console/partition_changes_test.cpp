#include "console/partition_changes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace pawl;
using ledger::PartitionState;

TEST_CASE("the text about a stored state does not promise that it applies without an owner") {
  struct Case {
    PartitionState before;
    PartitionState after;
    std::function<void(ledger::RegisterRow&)> change;
    const char* text;
  };
  const auto keep_owner = [](ledger::RegisterRow& /*row*/) {};
  const Case cases[] = {
      {PartitionState::kPaused, PartitionState::kRunning, keep_owner,
       "orders[3] was paused and is running now. Next offset: 42"},
      {PartitionState::kRunning, PartitionState::kPaused, keep_owner,
       "orders[3] was running and is paused now. Next offset: 42"},
      {PartitionState::kRunning, PartitionState::kRunning, keep_owner,
       "orders[3] was running before"},
      {PartitionState::kHalted, PartitionState::kRunning, [](auto& row) { row.released = true; },
       "orders[3] was halted, and its stored state is running now. No process owns the partition, "
       "so the state takes effect when a process acquires it. Next offset: 42"},
      {PartitionState::kRunning, PartitionState::kPaused,
       [](auto& row) { row.session_gone = true; },
       "orders[3] was running, and its stored state is paused now. No process owns the partition, "
       "so the state takes effect when a process acquires it. Next offset: 42"},
      {PartitionState::kRunning, PartitionState::kRunning, [](auto& row) { row.owner.clear(); },
       "orders[3] was running before. No process owns the partition now"},
  };
  for (const auto& [before, after, change, text] : cases) {
    ledger::RegisterRow row;
    row.partition = {"orders", 3};
    row.stored = ledger::Position::behind(41);
    row.owner = "host-1";
    row.released = false;
    row.state = before;
    change(row);
    CHECK(cli::stored_state_text(row, after) == text);
  }
}
