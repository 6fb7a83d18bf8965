#include "message/message_digest.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <string_view>

#include "message/digest.hpp"
#include "message/timestamp.hpp"

namespace pawl::message {
namespace {

/// With its length, so that nothing can be read as the end of one part and the beginning of the
/// next.
void append(std::string& text, const std::optional<std::string_view>& bytes) {
  if (bytes) {
    fmt::format_to(std::back_inserter(text), "{}:", bytes->size());
    text.append(*bytes);
  } else {
    text.append("-:");
  }
}

std::string binary(const Sha256& digest) {
  return {digest.begin(), digest.end()};
}

}  // namespace

std::string message_digest(const Message& message) {
  std::string text;
  fmt::format_to(std::back_inserter(text), "{}:", milliseconds_of(message.timestamp()));
  append(text, message.key());
  // The value may be large, and is not copied.
  const auto value =
      message.has_value() ? std::optional(binary(sha256(message.value()))) : std::nullopt;
  append(text, value);
  // What cannot be read is another message than one without headers.
  if (message.headers_unreadable())
    text.append("?");
  for (const auto& header : message.headers()) {
    append(text, header.name);
    append(text, header.value);
  }
  return binary(sha256(text));
}

}  // namespace pawl::message
