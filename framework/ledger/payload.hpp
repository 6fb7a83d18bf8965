#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/message.hpp"

namespace pawl::ledger {

/// A header that owns its bytes.
struct StoredHeader {
  std::string name;
  std::optional<std::string> value;
};
/// Valid as long as `headers`.
[[nodiscard]] std::vector<Header> views_of(const std::vector<StoredHeader>& headers);

/// Headers as JSON, in the producer's order: [{"name": "...", "value": base64 or null}]. A name
/// that is not UTF-8 has its bytes in "name_base64" as well. "null": they cannot be read.
[[nodiscard]] std::string headers_json(const Message& message);
[[nodiscard]] std::string headers_json(std::span<const Header> headers);
inline constexpr std::string_view kUnknownHeaders = "null";

/// The reverse. Throws std::invalid_argument when the text is something else.
[[nodiscard]] std::vector<StoredHeader> parse_headers_json(std::string_view text);
/// The same of a message that was read; nullopt: its headers are unknown.
[[nodiscard]] std::optional<std::vector<StoredHeader>> parse_message_headers(std::string_view text);

}  // namespace pawl::ledger
