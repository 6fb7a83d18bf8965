#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pawl/message.hpp"

namespace pawl::cli {

/// The JSON that commands print: members keep the order in which they are set.
using Json = nlohmann::ordered_json;

/// An empty text means that there is none.
inline Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// "2026-01-31T00:00:00.000Z"; milliseconds since 1970 if RFC 3339 cannot express the year, which a
/// producer may set to anything.
[[nodiscard]] Json json_of(Timestamp time);

inline Json or_null(std::optional<Timestamp> time) {
  return time ? json_of(*time) : Json(nullptr);
}

/// What json_of() or null stands for. Throws std::invalid_argument.
[[nodiscard]] std::optional<Timestamp> timestamp_from(const Json& json);

/// Indented; what is not UTF-8 is replaced.
inline std::string indented(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pawl::cli
