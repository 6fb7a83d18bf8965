#include "ledger/position.hpp"

#include <catch2/catch_test_macros.hpp>

using pawl::ledger::Position;

TEST_CASE("a position is behind one offset and before the next") {
  STATIC_CHECK(Position::behind(41) == Position::before(42));
  STATIC_CHECK(Position::behind(41).last() == 41);
  STATIC_CHECK(Position::behind(41).next() == 42);
  STATIC_CHECK(Position::before(42).last() == 41);
  STATIC_CHECK(Position::behind(41) < Position::behind(42));
}

TEST_CASE("a position that nobody has stated is at the log's beginning") {
  STATIC_CHECK(Position() == Position::before(0));
  STATIC_CHECK(Position() == Position::behind(-1));
  STATIC_CHECK(Position().last() == -1);
}
