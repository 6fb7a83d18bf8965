#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/document.hpp"

namespace pawl::config {

// Values without a place, as a document would hold them.

[[nodiscard]] Node text_value(std::string text);
[[nodiscard]] Node texts_value(const std::vector<std::string>& texts);
[[nodiscard]] Node integer_value(std::int64_t number);
[[nodiscard]] Node flag_value(bool flag);
/// Milliseconds since 1970.
[[nodiscard]] Node time_value(std::int64_t milliseconds);

/// A name as TOML 1.0 has it before "=": bare where that is allowed.
[[nodiscard]] std::string toml_key(const std::string& name);
/// The value as TOML 1.0 has it, on one line; a table inline.
[[nodiscard]] std::string toml_text(const Node& value);

/// A time in milliseconds since 1970 as RFC 3339 has it, such as 2026-01-31T00:00:00Z.
[[nodiscard]] std::string time_text(std::int64_t milliseconds);

}  // namespace pawl::config
