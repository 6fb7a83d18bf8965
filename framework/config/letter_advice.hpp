#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/options.hpp"

namespace pawl {

/// "; look at it: pawl dlq show --config orders.toml 17", behind why a message is a dead letter.
[[nodiscard]] std::string letter_advice(const InvocationOptions& invocation, std::int64_t letter);

/// A text without that: what is the same of letters that died of the same.
[[nodiscard]] std::string_view without_letter_advice(std::string_view text);

}  // namespace pawl
