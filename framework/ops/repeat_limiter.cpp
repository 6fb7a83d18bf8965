#include "ops/repeat_limiter.hpp"

namespace pawl::ops {
namespace {

/// Texts that all differ must not fill the memory; beyond it new ones pass unlimited.
constexpr std::size_t kMost = 4096;

}  // namespace

bool RepeatLimiter::admit(const Incident& incident, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  const auto known = entries_.find(incident);
  if (known == entries_.end()) {
    if (entries_.size() < kMost)
      entries_.emplace(incident, Entry{now});
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
    auto& [incident, known] = *entry;
    if (!all && now - known.shown < interval_) {
      ++entry;
      continue;
    }
    if (known.held == 0) {
      entry = entries_.erase(entry);
      continue;
    }
    result.push_back({incident, known.held, now - known.shown});
    known = {now};
    ++entry;
  }
  return result;
}

std::vector<RepeatLimiter::Held> RepeatLimiter::take_held_of(std::string_view topic,
                                                             Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  std::vector<Held> result;
  for (auto& [incident, known] : entries_) {
    if (incident.topic != topic || known.held == 0)
      continue;
    result.push_back({incident, known.held, now - known.shown});
    known = {now};
  }
  return result;
}

}  // namespace pawl::ops
