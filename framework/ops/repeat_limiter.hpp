#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::ops {

/// Lines that report the same incident, on whatever partition and at whatever attempt.
struct Incident {
  std::string_view event;  ///< a code of event_table()
  std::string topic = {};
  std::string handler = {};
  std::string sqlstate = {};
  std::string text = {};  ///< if there is no SQLSTATE; otherwise empty
  friend auto operator<=>(const Incident&, const Incident&) = default;
};

/// Admits one line per incident and interval, and counts the others. Thread-safe.
class RepeatLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RepeatLimiter(std::chrono::milliseconds interval) : interval_(interval) {}

  /// True: write it. False: one was written less than an interval ago, and this one is counted.
  bool admit(const Incident& incident, Clock::time_point now);

  struct Held {
    Incident incident;
    std::uint64_t lines = 0;
    Clock::duration period{};  ///< since a line about it was written
  };
  /// Incidents with counted lines whose interval is over. The interval begins again for them.
  /// `all`: also those whose interval is not over.
  std::vector<Held> take_held(Clock::time_point now, bool all = false);
  /// The same of the incidents of a topic, before their interval is over.
  std::vector<Held> take_held_of(std::string_view topic, Clock::time_point now);

 private:
  struct Entry {
    Clock::time_point shown;
    std::uint64_t held = 0;
  };

  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::map<Incident, Entry> entries_;  // guarded by mutex_
};

}  // namespace pawl::ops
