#include "ops/repeat_limiter.hpp"

#include <fmt/format.h>

namespace pawl::ops {
namespace {

/// Texts that all differ must not fill the memory; beyond it new ones pass unlimited.
constexpr std::size_t kMost = 4096;

constexpr std::string_view kKafka = "Kafka: ";
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

/// " (attempt 3 of 7)", " (attempt 7, the last one)"; DETAIL may follow.
void erase_attempt(std::string& text) {
  constexpr std::string_view kAttempt = " (attempt ";
  const auto begin = text.rfind(kAttempt);
  const auto number = begin + kAttempt.size();
  if (begin == std::string::npos || text.find_first_of("0123456789", number) != number)
    return;
  const auto end = text.find(')', number);
  if (end != std::string::npos)
    text.erase(begin, end + 1 - begin);
}

/// "kafka:9092/bootstrap: " and "GroupCoordinator: kafka:9092/1: " are both "kafka:9092: ".
void erase_broker_name(std::string& text) {
  if (text.compare(kKafka.size(), kCoordinator.size(), kCoordinator) == 0)
    text.erase(kKafka.size(), kCoordinator.size());
  const auto end = text.find(": ", kKafka.size());
  if (end == std::string::npos)
    return;
  const auto slash = text.rfind('/', end);
  if (slash == std::string::npos || slash < kKafka.size())
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
  erase_attempt(result);
  if (!text.starts_with(kKafka))
    return result;
  erase_duration(result);
  erase_broker_name(result);
  return result;
}

std::string times_text(std::uint64_t times, std::chrono::milliseconds ago) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ago).count();
  if (times == 1)
    return seconds == 0 ? "once more" : fmt::format("once more, {} s ago", seconds);
  return fmt::format("{} more times{}", times,
                     seconds == 0 ? "" : fmt::format(", the last one {} s ago", seconds));
}

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
  known->second.last = now;
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
    result.push_back({entry->first, entry->second.held, entry->second.last});
    entry->second = {now};
    ++entry;
  }
  return result;
}

std::vector<RepeatLimiter::Held> RepeatLimiter::take_held_of(std::string_view begin,
                                                             Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  std::vector<Held> result;
  for (auto entry = entries_.lower_bound(std::string(begin));
       entry != entries_.end() && entry->first.starts_with(begin); ++entry) {
    if (entry->second.held == 0)
      continue;
    result.push_back({entry->first, entry->second.held, entry->second.last});
    entry->second = {now};
  }
  return result;
}

}  // namespace pawl::ops
