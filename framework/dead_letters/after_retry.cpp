#include "dead_letters/after_retry.hpp"

namespace pawl::engine {
namespace {

/// An outage, contention, and a program that is wrong would fail any message.
bool is_the_messages(postgres::FailureClass kind) {
  using postgres::FailureClass;
  return kind == FailureClass::kMessage || kind == FailureClass::kTransactionEnded;
}

}  // namespace

AfterRetry after_retry(const ReplayResult& result, bool last) {
  using Kind = ReplayResult::Kind;
  switch (result.kind) {
    case Kind::kApplied:
    case Kind::kDuplicate:
    case Kind::kResolved:
      return AfterRetry::kResolved;
    case Kind::kWaits:
    case Kind::kPending:
    case Kind::kNotRead:
      return AfterRetry::kGivenBack;
    case Kind::kUnreadable:
      return AfterRetry::kWaits;
    case Kind::kBreaks:
      return last ? AfterRetry::kWaits : AfterRetry::kTriedLater;
    case Kind::kFailed:
      break;
  }
  if (!is_the_messages(result.failure.kind))
    return AfterRetry::kGivenBack;
  return last || !may_pass_later(result.failure) ? AfterRetry::kWaits : AfterRetry::kTriedLater;
}

}  // namespace pawl::engine
