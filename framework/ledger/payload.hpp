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

/// Headers as JSON, in the producer's order: [{"name": "...", "value": base64 or null}].
[[nodiscard]] std::string headers_json(std::span<const Header> headers);

/// The reverse. Throws std::invalid_argument when the text is something else.
[[nodiscard]] std::vector<StoredHeader> parse_headers_json(std::string_view text);

}  // namespace pawl::ledger
