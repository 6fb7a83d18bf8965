#include "engine/call_watch.hpp"

#include <algorithm>

namespace pawl::engine {
namespace {

/// By which a rest may be late on a machine that is only busy.
constexpr std::chrono::milliseconds kLate{2000};

}  // namespace

void CallWatch::rested(std::chrono::milliseconds asked, Clock::time_point from,
                       Clock::time_point to) {
  if (to - from > asked + kLate)
    running_since_ = to;
}

CallWatch::Verdict CallWatch::look(const void* whose, Clock::time_point since,
                                   std::chrono::milliseconds limit, Clock::time_point now) {
  const auto waited_since = [&](Clock::time_point begin) {
    return now - std::max(begin, running_since_);
  };
  const auto found = given_up_.find(whose);
  if (found != given_up_.end() && found->second.since == since)
    return waited_since(found->second.at) > limit ? Verdict::kEndProcess : Verdict::kGivenUp;
  if (waited_since(since) <= limit)
    return Verdict::kWait;
  given_up_[whose] = {since, now};
  return Verdict::kGiveUp;
}

}  // namespace pawl::engine
