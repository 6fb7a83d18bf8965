#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pawl/message.hpp"

namespace pawl::cli {

/// What commands print for machines: members stay in the order in which they are set.
using Json = nlohmann::ordered_json;

/// An empty text means that there is none.
inline Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Milliseconds since 1970.
inline Json or_null(std::optional<Timestamp> time) {
  return time ? Json(time->time_since_epoch().count()) : Json(nullptr);
}

/// Indented; what is not UTF-8 is replaced.
inline std::string indented(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pawl::cli
