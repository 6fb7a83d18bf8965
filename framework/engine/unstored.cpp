#include "engine/unstored.hpp"

#include <algorithm>

#include "engine/errand.hpp"

namespace pawl::engine {

Unstored::Turn Unstored::turn_of(Call& call, const Now& now) {
  if (call.waited_since && released_at_ && *released_at_ >= *call.waited_since)
    call.not_before = std::min(call.not_before, now.time);
  if (now.winding_up)
    call.not_before = std::min(call.not_before, now.time + longest_look_);
  const bool lets_begin = contention_.lets_begin(now.time, running_);
  // Who waits for all of them waits for no pause.
  if (now.time >= call.not_before && (lets_begin || (now.winding_up && running_ == 0)))
    return Turn::kStore;
  return now.given_up && contention_.is_on() ? Turn::kLetGo : Turn::kWait;
}

Unstored::Clock::time_point Unstored::look_again(const Call& call, const Now& now) const {
  const auto pause = now.winding_up ? std::nullopt : contention_.due(call.not_before, running_);
  const auto due = std::max(pause.value_or(call.not_before), call.not_before);
  const auto longest = now.time + longest_look_;
  return due > now.time ? std::min(due, longest) : longest;
}

void Unstored::ended(Call& call, const Landing& landing, Clock::time_point begun,
                     Clock::time_point now, std::uint32_t& waits) {
  --running_;
  if (!landing.unstored) {
    if (landing.answered() && !landing.waited_for_lock)
      contention_.passed();
    return;
  }
  if (!landing.waited_for_lock) {
    call = {now + landing.wait, std::nullopt};
    return;
  }
  call = {now + wait_in_contention(begun, now, options_, contention_, waits), begun};
  if (released_at_ && *released_at_ >= begun)
    contention_.lock_released(now);
}

void Unstored::lock_released(Clock::time_point now) {
  released_at_ = now;
  contention_.lock_released(now);
}

}  // namespace pawl::engine
