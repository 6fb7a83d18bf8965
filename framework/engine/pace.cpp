#include "engine/pace.hpp"

#include <algorithm>

namespace pawl::engine {
namespace {

/// While a batch lingers its messages are looked at so often.
constexpr int kLooks = 16;
constexpr std::chrono::milliseconds kShortestPause{1};

}  // namespace

void Pace::failed(const Attempt& attempt, Action::Company company) {
  const bool pipelined = attempt.what == Undertaking::kPipeline;
  const bool batched = attempt.what == Undertaking::kBatch;
  if (pipelined && attempt.failure.kind == postgres::FailureClass::kConnection)
    pipeline_.connection_broke();
  switch (company) {
    case Action::Company::kAsBefore:
      return;
    case Action::Company::kFewer:
      batch_.contended(attempt.messages);
      return;
    case Action::Company::kHalved:
      if (batched) {
        batch_.failed(attempt.messages);
      } else {
        pipeline_.run_alone(1);
      }
      return;
    case Action::Company::kAlone:
      if (batched)
        batch_.run_alone(attempt.messages);
      if (pipelined)
        pipeline_.run_alone(attempt.messages);
      return;
  }
}

void Pace::passed(std::size_t messages, std::int64_t offset, bool one_had_failed,
                  Clock::duration took) {
  stop_lingering();
  pipeline_.passed(messages);
  batch_.passed(messages, offset, one_had_failed, took);
}

bool Pace::lingers(Clock::time_point now, std::chrono::milliseconds linger) {
  if (linger == std::chrono::milliseconds(0))
    return false;
  if (!linger_)
    linger_ = {now + linger, now};
  if (now >= linger_->until)
    return false;
  const auto pause = std::max<Clock::duration>(Clock::duration(linger) / kLooks, kShortestPause);
  linger_->look_again = std::min(linger_->until, now + pause);
  return true;
}

std::optional<Pace::Clock::time_point> Pace::look_again() const {
  return linger_ ? std::optional(linger_->look_again) : std::nullopt;
}

}  // namespace pawl::engine
