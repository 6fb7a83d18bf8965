#include "engine/tried_halts.hpp"

#include <catch2/catch_test_macros.hpp>

using pawl::engine::TriedHalts;
using pawl::ledger::Position;

TEST_CASE("a halt is tried until one try has had an outcome, whichever worker's") {
  TriedHalts tried;
  CHECK_FALSE(tried.contains({"t", 0}, Position::behind(4)));
  tried.add({"t", 0}, Position::behind(4));
  CHECK(tried.contains({"t", 0}, Position::behind(4)));
  CHECK_FALSE(tried.contains({"t", 1}, Position::behind(4)));
  CHECK_FALSE(tried.contains({"u", 0}, Position::behind(4)));
}

TEST_CASE("a partition that halts elsewhere, or came back to where it halted, is tried again") {
  TriedHalts tried;
  tried.add({"t", 0}, Position::behind(4));
  CHECK_FALSE(tried.contains({"t", 0}, Position::behind(9)));
  tried.add({"t", 0}, Position::behind(9));
  CHECK_FALSE(tried.contains({"t", 0}, Position::behind(4)));
}
