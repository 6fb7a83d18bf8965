#pragma once

#include <optional>
#include <string>

namespace pawl {

/// What a handler answers: bytes to store with the idempotency key, at most
/// `idempotency.max_response`, or nothing (docs/stored-responses.md).
using Response = std::optional<std::string>;

}  // namespace pawl
