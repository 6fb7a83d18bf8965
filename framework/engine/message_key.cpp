#include "engine/message_key.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "message/idempotency_key.hpp"

namespace pawl::engine {

std::variant<NoKey, Key> derive_key(const handlers::Binding& binding, const Message& message,
                                    message::JsonView& json) {
  if (binding.key_function != nullptr) {
    auto raw = (*binding.key_function)(message);
    if (!raw)
      return NoKey{"its key function returned no key"};
    if (auto key = message::make_idempotency_key(std::move(*raw)))
      return Key{*std::move(key)};
    return NoKey{"its key function returned an empty key"};
  }
  if (!binding.key_template)
    return NoKey{"none is configured"};
  const auto& pattern = *binding.key_template;
  auto rendered = pattern.render_key(message, json);
  if (auto* text = std::get_if<message::KeyText>(&rendered)) {
    // A rendered key is never empty.
    return Key{message::make_idempotency_key(std::move(text->text)).value()};
  }
  const auto& missing = std::get<message::Missing>(rendered);
  return NoKey{fmt::format("no value for {{{}}}, column {} of {}{}", missing.source, missing.column,
                           pattern.text(),
                           missing.of_value && !message.has_value()
                               ? ", because the message is a tombstone (its value is null)"
                               : "")};
}

const std::string& scope_name(const KafkaOptions& kafka, const std::string& configured,
                              std::string_view topic, std::string& buffer) {
  if (!configured.empty())
    return configured;
  // Two topics' ids never collide unless somebody asks for it by naming a scope.
  buffer.clear();
  fmt::format_to(std::back_inserter(buffer), "{}/{}/{}", kafka.cluster, kafka.group, topic);
  return buffer;
}

}  // namespace pawl::engine
