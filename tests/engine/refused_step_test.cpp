#include <catch2/catch_test_macros.hpp>

#include <ostream>
#include <string>
#include <vector>

#include "engine/failure.hpp"

using pawl::engine::after_refused_step;
using pawl::engine::Failure;
using pawl::engine::RefusedStep;

// Nothing here may end in an attempt, a policy or a letter: no message is in hand.
TEST_CASE("what a refused statement of ours leads to depends on what it did to the session") {
  struct Row {
    std::string sqlstate;
    bool prepared_anew;
    RefusedStep expected;
  };
  const std::vector<Row> rows{
      {"57P01", false, RefusedStep::kHalt},      // a trigger's words: the session lives
      {"PW001", false, RefusedStep::kGiveWay},   // fenced
      {"PW004", false, RefusedStep::kGiveWay},   // no row
      {"PW002", false, RefusedStep::kAskAgain},  // out of order
      {"40001", false, RefusedStep::kTryAgain},  // contention
      {"40P01", false, RefusedStep::kTryAgain},    {"55P03", false, RefusedStep::kTryAgain},
      {"57014", false, RefusedStep::kTryAgain},  // a timeout of ours
      {"53100", false, RefusedStep::kTryAgain},  // disk full
      {"0A000", false, RefusedStep::kPrepareAnew}, {"26000", false, RefusedStep::kPrepareAnew},
      {"0A000", true, RefusedStep::kHalt},         {"26000", true, RefusedStep::kHalt},
      {"42501", false, RefusedStep::kHalt},  // a right is missing
      {"P0001", false, RefusedStep::kHalt},  // somebody's trigger
      {"23514", false, RefusedStep::kHalt},        {"PW003", false, RefusedStep::kHalt},
  };
  for (const auto& row : rows) {
    CAPTURE(row.sqlstate, row.prepared_anew);
    Failure failure;
    failure.sqlstate = row.sqlstate;
    failure.kind = pawl::postgres::classify(row.sqlstate);
    CHECK(after_refused_step(failure, row.prepared_anew) == row.expected);
    failure.kind = pawl::postgres::classify(row.sqlstate, {.session_died = true});
    CHECK(after_refused_step(failure, row.prepared_anew) == RefusedStep::kReconnect);
  }
}
