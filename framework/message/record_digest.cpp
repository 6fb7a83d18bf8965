#include "message/record_digest.hpp"

#include <string_view>

#include "message/idempotency_key.hpp"

namespace pawl::message {
namespace {

/// FNV-1a, 64 bits.
constexpr std::uint64_t kBasis = 14695981039346656037U;
constexpr std::uint64_t kPrime = 1099511628211U;

std::uint64_t mix(std::uint64_t digest, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) {
    digest = (digest ^ (number & 0xffU)) * kPrime;
    number >>= 8U;
  }
  return digest;
}

}  // namespace

std::int64_t record_digest(const Message& message) {
  auto digest = mix(kBasis, static_cast<std::uint64_t>(payload_hash(message)));
  if (const auto time = message.timestamp())
    digest = mix(digest, static_cast<std::uint64_t>(time->time_since_epoch().count()));
  if (const auto key = message.key()) {
    for (const char byte : *key)
      digest = (digest ^ static_cast<unsigned char>(byte)) * kPrime;
    digest = mix(digest, key->size());
  }
  return static_cast<std::int64_t>(digest);
}

}  // namespace pawl::message
