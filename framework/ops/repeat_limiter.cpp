#include "ops/repeat_limiter.hpp"

namespace pawl::ops {
namespace {

/// Texts that all differ must not fill the memory; beyond it new ones pass unlimited.
constexpr std::size_t kMost = 4096;

}  // namespace

bool RepeatLimiter::admit(const std::string& text, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  const auto known = entries_.find(text);
  if (known == entries_.end()) {
    if (entries_.size() < kMost)
      entries_.emplace(text, Entry{now});
    return true;
  }
  if (now - known->second.shown >= interval_ && known->second.held == 0) {
    known->second.shown = now;
    return true;
  }
  ++known->second.held;
  return false;
}

std::vector<RepeatLimiter::Held> RepeatLimiter::take_held(Clock::time_point now, bool all) {
  const std::scoped_lock lock(mutex_);
  std::vector<Held> result;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (!all && now - entry->second.shown < interval_) {
      ++entry;
      continue;
    }
    if (entry->second.held == 0) {
      entry = entries_.erase(entry);
      continue;
    }
    result.push_back({entry->first, entry->second.held});
    entry->second = {now};
    ++entry;
  }
  return result;
}

}  // namespace pawl::ops
