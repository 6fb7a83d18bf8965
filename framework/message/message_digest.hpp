#pragma once

#include <string>

#include "pawl/message.hpp"

namespace pawl::message {

/// SHA-256 over the message's time, key, value and headers, as 32 bytes: what tells a message from
/// another one that has its offset, as of a topic that was made anew. Any thread. Throws FatalError
/// when OpenSSL refuses to compute it.
[[nodiscard]] std::string message_digest(const Message& message);

}  // namespace pawl::message
