#include "engine/dead_letter_bell.hpp"

#include <utility>

namespace pawl::engine {

void DeadLetterBell::on_event(const Event& event) noexcept {
  if (event.step != Step::kDeadLettered && event.step != Step::kParked)
    return;
  {
    const std::scoped_lock lock(mutex_);
    // The first of many is enough, and workers do not wake anybody for nothing.
    if (std::exchange(rung_, true))
      return;
  }
  changed_.notify_one();
}

void DeadLetterBell::stop(Clock::time_point deadline, bool feed_rest) {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    feed_rest_ = feed_rest;
    deadline_ = deadline;
  }
  changed_.notify_one();
}

void DeadLetterBell::wait(std::chrono::milliseconds least, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, least, [this] { return stopping_; }))
    return;
  if (most > least)
    changed_.wait_for(lock, most - least, [this] { return stopping_ || rung_; });
  rung_ = false;
}

bool DeadLetterBell::stopping() const {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

bool DeadLetterBell::feed_rest() const {
  const std::scoped_lock lock(mutex_);
  return feed_rest_;
}

bool DeadLetterBell::overdue() const {
  const std::scoped_lock lock(mutex_);
  return Clock::now() > deadline_;
}

}  // namespace pawl::engine
