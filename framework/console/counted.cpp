#include "console/counted.hpp"

#include <fmt/format.h>

namespace pawl::cli {

std::string grouped(std::int64_t number) {
  const auto digits = fmt::format("{}", number);
  const std::size_t sign = number < 0 ? 1 : 0;
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0)
      result += ',';
    result += digits[i];
  }
  return result;
}

std::string counted(std::int64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

std::string rate_number(double rate) {
  // 9.96 is 10, not 10.0.
  return rate > 0 && rate < 9.95 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
}

std::string date_time(std::string_view time) {
  constexpr std::size_t kDay = sizeof("2026-11-26") - 1;
  if (time.size() <= kDay || time[kDay] != 'T')
    return std::string(time);
  return fmt::format("{} {}", time.substr(0, kDay), time_of_day(time));
}

std::string time_of_day(std::string_view time) {
  const auto day = time.find('T');
  if (day == std::string_view::npos)
    return std::string(time);
  const auto clock = time.substr(day + 1);
  return std::string(clock.substr(0, clock.find_first_of(".Z+")));
}

std::string time_near(std::string_view time, std::string_view now) {
  return time.substr(0, time.find('T')) == now.substr(0, now.find('T')) ? time_of_day(time)
                                                                        : date_time(time);
}

}  // namespace pawl::cli
