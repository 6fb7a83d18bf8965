#include "engine/fetch_crashes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "engine/fetch_turn.hpp"

using namespace std::chrono_literals;
using pawl::engine::FetchTurn;
using pawl::ledger::PartitionState;

namespace {

/// An owner that ended in the first fetch of a partition, unless a row changes something.
struct Row {
  std::string what;
  std::uint32_t crashes = 0;  ///< counted before
  std::uint32_t expected = 0;
  bool log_goes_on = true;
  bool ours = false;
  bool released = false;
  PartitionState state = PartitionState::kRunning;
  bool moved = false;
  bool begun = false;
  bool owner_lives = false;
  bool marked = false;
  std::int64_t counted_at = 5;
};

}  // namespace

TEST_CASE("a crash counts only for a partition that its process was fetching for the first time") {
  const auto row = GENERATE(
      Row{.what = "nothing had arrived", .expected = 1},
      Row{.what = "something had arrived", .expected = 0, .begun = true},
      Row{.what = "its log ended there", .expected = 0, .log_goes_on = false},
      Row{.what = "it was paused", .expected = 0, .state = PartitionState::kPaused},
      Row{.what = "it was halted", .expected = 0, .state = PartitionState::kHalted},
      Row{.what = "its owner lives", .expected = 0, .owner_lives = true},
      Row{.what = "we are its owner", .expected = 0, .ours = true},
      Row{.what = "counted, and fetched alone", .crashes = 1, .expected = 2, .marked = true},
      Row{.what = "again", .crashes = 2, .expected = 3, .marked = true},
      Row{.what = "counted, and waited for its turn", .crashes = 2, .expected = 2},
      Row{.what = "counted, and survived its turn", .crashes = 2, .expected = 2, .begun = true},
      Row{.what = "counted, then paused",
          .crashes = 2,
          .expected = 2,
          .state = PartitionState::kPaused,
          .marked = true},
      Row{.what = "counted, and its owner lives",
          .crashes = 2,
          .expected = 2,
          .owner_lives = true,
          .marked = true},
      Row{.what = "given back", .expected = 0, .released = true},
      Row{.what = "counted, and given back before something had arrived",
          .crashes = 2,
          .expected = 2,
          .released = true},
      Row{.what = "counted, and resumed by an operator",
          .crashes = 2,
          .expected = 2,
          .moved = true},
      Row{.what = "an advance", .crashes = 2, .expected = 0, .moved = true, .counted_at = 4},
      Row{.what = "an advance by another owner before",
          .crashes = 2,
          .expected = 1,
          .counted_at = 4});
  INFO(row.what);
  pawl::ledger::Acquired acquired;
  acquired.stored = pawl::ledger::Position::behind(4);
  acquired.released = row.released;
  acquired.state = row.state;
  acquired.previous_owner = "another";
  acquired.first_fetch = {.moved = row.moved,
                          .begun = row.begun,
                          .owner_lives = row.owner_lives,
                          .offset = row.counted_at,
                          .crashes = row.crashes,
                          .marked = row.marked};
  CHECK(pawl::engine::fetch_crashes(acquired, row.log_goes_on, row.ours) == row.expected);
}

TEST_CASE("one crash alone halts no partition") {
  pawl::FailureOptions options;
  options.max_crashes = 1;
  CHECK(pawl::engine::most_fetch_crashes(options) == 2);
  options.max_crashes = 7;
  CHECK(pawl::engine::most_fetch_crashes(options) == 7);
}

TEST_CASE("one partition has the turn, and after it others work for as long as it took") {
  FetchTurn turn;
  const int one = 0;
  const int other = 0;
  const FetchTurn::Clock::time_point begin{1h};
  REQUIRE(turn.take(&one, begin));
  CHECK(turn.take(&one, begin));
  CHECK_FALSE(turn.take(&other, begin + 1s));
  turn.give_back(&other, begin + 1s);
  CHECK_FALSE(turn.take(&other, begin + 1s));
  turn.give_back(&one, begin + 2s);
  CHECK_FALSE(turn.take(&other, begin + 4s - 1ms));
  CHECK(turn.take(&other, begin + 4s));
  turn.give_back(&other, begin + 4s);
  CHECK_FALSE(turn.take(&one, begin + 4s + 99ms));
  CHECK(turn.take(&one, begin + 4s + 100ms));
}
