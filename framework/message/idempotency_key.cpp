#include "message/idempotency_key.hpp"

#include <fmt/format.h>

#include <simdjson.h>

#include <bit>

#include "message/digest.hpp"

namespace pawl::message {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";

bool can_be_stored(std::string_view raw) {
  return raw.size() <= kMaxIdempotencyKeyBytes && !raw.starts_with(kHashPrefix) &&
         raw.find('\0') == std::string_view::npos &&
         simdjson::validate_utf8(raw.data(), raw.size());
}

}  // namespace

std::optional<std::string> make_idempotency_key(std::string raw) {
  if (raw.empty())
    return std::nullopt;
  if (can_be_stored(raw))
    return raw;
  return std::string{kHashPrefix} + sha256_hex(raw);
}

std::string remote_key(std::string_view scope, std::string_view key) {
  // The scope's length keeps two pairs apart that read the same one after the other.
  return sha256_hex(fmt::format("{}:{}{}", scope.size(), scope, key));
}

std::int64_t payload_hash(std::optional<std::string_view> value) {
  if (!value)
    return kTombstoneHash;
  const Sha256 digest = sha256(*value);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sizeof first; ++i)
    first = first << 8U | digest[i];
  return std::bit_cast<std::int64_t>(first);
}

std::int64_t payload_hash(const Message& message) {
  return payload_hash(message.has_value() ? std::optional{message.value()} : std::nullopt);
}

}  // namespace pawl::message
