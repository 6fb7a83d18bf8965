#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::ops {

/// The text of an error of Kafka's client without what differs each time: how long its state
/// lasted, how many like it were left out, and under which of its names the broker is known
/// ("Kafka: GroupCoordinator: kafka:9092/1: Disconnected (after 7ms in state UP)"). Of a failed
/// attempt without its number ("no such account (attempt 3 of 7)"). Others as they are.
[[nodiscard]] std::string without_counts(std::string_view text);

/// "5 more times, the last one 48 s ago", "once more": what is said `ago` after the last of
/// `times`.
[[nodiscard]] std::string times_text(std::uint64_t times, std::chrono::milliseconds ago);

/// Lets the same text through once a minute, and counts what it held back. Thread-safe.
class RepeatLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RepeatLimiter(std::chrono::milliseconds interval) : interval_(interval) {}

  /// True: show it. False: it was shown less than an interval ago, and is counted now.
  bool admit(const std::string& text, Clock::time_point now);

  struct Held {
    std::string text;
    std::uint64_t times = 0;
    Clock::time_point last;  ///< when it came the last time
  };
  /// Texts whose interval is over and that were held back meanwhile; they are shown anew next time.
  /// `all`: also those whose interval is not over.
  std::vector<Held> take_held(Clock::time_point now, bool all = false);
  /// The same of texts that begin like that, before their interval is over.
  std::vector<Held> take_held_of(std::string_view begin, Clock::time_point now);

 private:
  struct Entry {
    Clock::time_point shown;
    std::uint64_t held = 0;
    Clock::time_point last = shown;
  };

  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
};

}  // namespace pawl::ops
