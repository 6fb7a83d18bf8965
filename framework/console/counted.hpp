#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pawl::cli {

// Numbers and times for people.

/// 12345 as "12,345".
[[nodiscard]] std::string grouped(std::int64_t number);
/// "1 message", "12,345 messages".
[[nodiscard]] std::string counted(std::int64_t number, const char* one, const char* many);

/// Messages per second: "0", "0.3" and "9.9" below 10, and "12" from there.
[[nodiscard]] std::string rate_number(double rate);

// Of a time in RFC 3339, UTC. What is none stays as it is.

/// "2026-11-26 17:00:24"
[[nodiscard]] std::string date_time(std::string_view time);
/// "17:00:24"
[[nodiscard]] std::string time_of_day(std::string_view time);
/// The time of day if `time` is on the same day as `now`, otherwise date and time.
[[nodiscard]] std::string time_near(std::string_view time, std::string_view now);

}  // namespace pawl::cli
