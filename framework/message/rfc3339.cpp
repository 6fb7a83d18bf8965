#include "message/rfc3339.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace pawl::message {
namespace {

std::string without_zone(std::chrono::sys_seconds time) {
  return fmt::format("{:%FT%T}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

}  // namespace

std::string rfc3339(Timestamp time) {
  return without_zone(std::chrono::floor<std::chrono::seconds>(time)) + "Z";
}

std::string rfc3339_milliseconds(Timestamp time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{}.{:03}Z", without_zone(seconds), (time - seconds).count());
}

}  // namespace pawl::message
