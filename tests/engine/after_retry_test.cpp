#include "dead_letters/after_retry.hpp"
#include "prelude.hpp"

using pawl::engine::after_retry;
using pawl::engine::AfterRetry;
using pawl::engine::ReplayResult;
using pawl::postgres::FailureClass;

namespace {

ReplayResult failed(FailureClass kind, bool permanent = false) {
  ReplayResult result{ReplayResult::Kind::kFailed, "why"};
  result.failure.kind = kind;
  result.failure.permanent = permanent;
  return result;
}

}  // namespace

TEST_CASE("what becomes of a letter that was tried again by itself") {
  using Kind = ReplayResult::Kind;
  struct Row {
    ReplayResult result;
    AfterRetry before_last;
    AfterRetry at_last;
  };
  const auto both = [](AfterRetry after) { return std::pair{after, after}; };
  const auto row = [](ReplayResult result, std::pair<AfterRetry, AfterRetry> after) {
    return Row{std::move(result), after.first, after.second};
  };
  const std::pair kCounts{AfterRetry::kTriedLater, AfterRetry::kWaits};
  const Row rows[] = {
      row({Kind::kApplied, ""}, both(AfterRetry::kResolved)),
      row({Kind::kDuplicate, ""}, both(AfterRetry::kResolved)),
      row({Kind::kResolved, ""}, both(AfterRetry::kResolved)),
      row({Kind::kWaits, ""}, both(AfterRetry::kGivenBack)),
      row({Kind::kNotRead, ""}, both(AfterRetry::kGivenBack)),
      row({Kind::kUnreadable, ""}, both(AfterRetry::kWaits)),
      row({Kind::kBreaks, ""}, kCounts),
      row(failed(FailureClass::kMessage), kCounts),
      row(failed(FailureClass::kMessage, true), both(AfterRetry::kWaits)),
      row(failed(FailureClass::kTransactionEnded), both(AfterRetry::kWaits)),
      row(failed(FailureClass::kContention), both(AfterRetry::kGivenBack)),
      row(failed(FailureClass::kResource), both(AfterRetry::kGivenBack)),
      row(failed(FailureClass::kProgram), both(AfterRetry::kGivenBack)),
      row(failed(FailureClass::kReadOnly), both(AfterRetry::kGivenBack)),
      row(failed(FailureClass::kConnection), both(AfterRetry::kGivenBack)),
  };
  for (const auto& [result, before_last, at_last] : rows) {
    CAPTURE(static_cast<int>(result.kind), static_cast<int>(result.failure.kind),
            result.failure.permanent);
    CHECK(after_retry(result, false) == before_last);
    CHECK(after_retry(result, true) == at_last);
  }
}
