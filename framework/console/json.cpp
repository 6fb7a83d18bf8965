#include "console/json.hpp"

#include <stdexcept>

#include "config/document.hpp"
#include "console/json_integer.hpp"
#include "message/rfc3339.hpp"

namespace pawl::cli {
namespace {

/// RFC 3339 has years of four digits.
constexpr Timestamp kFirst{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
constexpr Timestamp kEnd{std::chrono::sys_days{std::chrono::year{10000} / 1 / 1}};

}  // namespace

Json json_of(Timestamp time) {
  if (time < kFirst || time >= kEnd)
    return time.time_since_epoch().count();
  return message::rfc3339_milliseconds(time);
}

std::optional<Timestamp> timestamp_from(const Json& json) {
  if (json.is_null())
    return std::nullopt;
  std::optional<std::int64_t> milliseconds;
  if (json.is_string())
    milliseconds = config::parse_time(json.get<std::string>());
  else if (json.is_number_integer())
    milliseconds = integer_from<std::int64_t>(json, "timestamp");
  if (!milliseconds) {
    throw std::invalid_argument(
        "timestamp is neither an RFC 3339 text with a time zone nor milliseconds since 1970");
  }
  return Timestamp{std::chrono::milliseconds{*milliseconds}};
}

}  // namespace pawl::cli
