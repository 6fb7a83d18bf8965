#pragma once

#include <optional>
#include <string>

namespace pawl {

/// The response of a handler: bytes that pawl stores with the idempotency key, at most
/// `idempotency.max_response`, or nothing (docs/stored-responses.md).
using Response = std::optional<std::string>;

}  // namespace pawl
