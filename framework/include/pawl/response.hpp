#pragma once

#include <optional>
#include <string>

namespace pawl {

/// What a handler answers: bytes to store with the idempotency key, at most
/// `idempotency.max_response`, or nothing (docs/responses.md).
using Response = std::optional<std::string>;

}  // namespace pawl
