#include "ops/repeat_limiter.hpp"

namespace pawl::ops {
namespace {

/// Texts that all differ must not fill the memory; beyond it new ones pass unlimited.
constexpr std::size_t kMost = 4096;

constexpr std::string_view kCoordinator = "GroupCoordinator: ";

/// " (after 7ms in state UP, 1 identical error(s) suppressed)", with the brackets inside it.
void erase_duration(std::string& text) {
  const auto begin = text.find(" (after ");
  if (begin == std::string::npos || text.find("ms in state ", begin) == std::string::npos)
    return;
  int open = 0;
  for (auto at = begin; at < text.size(); ++at) {
    open += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (open == 0 && text[at] == ')') {
      text.erase(begin, at + 1 - begin);
      return;
    }
  }
}

/// "kafka:9092/bootstrap: " and "GroupCoordinator: kafka:9092/1: " are both "kafka:9092: ".
void erase_broker_name(std::string& text) {
  if (text.starts_with(kCoordinator))
    text.erase(0, kCoordinator.size());
  const auto end = text.find(": ");
  if (end == std::string::npos)
    return;
  const auto slash = text.rfind('/', end);
  if (slash == std::string::npos)
    return;
  const auto id = std::string_view(text).substr(slash + 1, end - slash - 1);
  const bool is_number =
      !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_number || id == "bootstrap")
    text.erase(slash, end - slash);
}

}  // namespace

std::string without_counts(std::string_view text) {
  std::string result(text);
  erase_duration(result);
  erase_broker_name(result);
  return result;
}

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
