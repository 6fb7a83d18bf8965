#pragma once

#include <cstdint>

#include "pawl/message.hpp"

namespace pawl::message {

/// Tells a record from another one that has come to stand at its offset: of its time, key and
/// value. Stored while a message is ahead of the stored offset. Not against somebody who wants two
/// records to look alike.
[[nodiscard]] std::int64_t record_digest(const Message& message);

}  // namespace pawl::message
