#pragma once

#include <optional>
#include <string_view>

namespace pawl::config {

/// Why a librdkafka property cannot be passed through, and what to do instead.
struct Refusal {
  std::string_view reason;
  std::string_view instead;
};

/// Everything may be passed through that leaves the promise whole. Refused is what decides where a
/// partition starts, who owns it, which records are seen, and what pawl sets or serves itself.
/// Source: librdkafka's CONFIGURATION.md.
[[nodiscard]] std::optional<Refusal> refusal(std::string_view property, std::string_view value);

}  // namespace pawl::config
