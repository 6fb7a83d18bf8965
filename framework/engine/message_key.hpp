#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "handlers/router.hpp"
#include "message/json.hpp"
#include "pawl/message.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// The idempotency key of a message, as it is stored.
struct Key {
  std::string text;
};

/// A message without one (`idempotency.missing_key`).
struct NoKey {
  std::string why;  ///< what has nothing, for error texts
};

/// The key under which the handler's messages are applied once: for the consumer, for a replay and
/// for the audit that looks for it later. Throws message::MessageError when the value cannot be
/// read, and what a key function in code throws.
[[nodiscard]] std::variant<NoKey, Key> derive_key(const handlers::Binding& binding,
                                                  const Message& message, message::JsonView& json);

/// The scope within which that key is unique; `configured` is what the handler's configuration
/// says. May be made in `buffer`, whose memory serves many messages; valid until the next change of
/// either.
[[nodiscard]] const std::string& scope_name(const KafkaOptions& kafka,
                                            const std::string& configured, std::string_view topic,
                                            std::string& buffer);
/// It would return what is gone by then.
const std::string& scope_name(const KafkaOptions& kafka, std::string&& configured,
                              std::string_view topic, std::string& buffer) = delete;

}  // namespace pawl::engine
