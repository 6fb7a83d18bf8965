#include "engine/bell.hpp"

#include <utility>

namespace pawl::engine {

void Bell::ring() {
  {
    const std::scoped_lock lock(mutex_);
    // The first of many is enough, and workers do not wake anybody for nothing.
    if (std::exchange(rung_, true))
      return;
  }
  changed_.notify_one();
}

void Bell::stop(Clock::time_point deadline, bool finish) {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    finish_ = finish;
    deadline_ = deadline;
  }
  changed_.notify_one();
}

bool Bell::wait(std::chrono::milliseconds least, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, least, [this] { return stopping_.load(); }))
    return false;
  if (most > least)
    changed_.wait_for(lock, most - least, [this] { return stopping_ || rung_; });
  return std::exchange(rung_, false);
}

bool Bell::finish() const {
  const std::scoped_lock lock(mutex_);
  return finish_;
}

bool Bell::overdue() const {
  const std::scoped_lock lock(mutex_);
  return Clock::now() > deadline_;
}

}  // namespace pawl::engine
