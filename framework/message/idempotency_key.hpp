#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pawl/message.hpp"

namespace pawl::message {

/// Longest key that is stored as it is, in bytes. Longer ones would only grow the index.
inline constexpr std::size_t kMaxIdempotencyKeyBytes = 255;

/// The form in which a key is stored in pawl.idempotency_keys. A key comes from outside, so it may
/// be anything: one that is not valid UTF-8, contains NUL, is longer than kMaxIdempotencyKeyBytes,
/// or begins with "sha256:" becomes "sha256:" and the 64 hexadecimal digits of its SHA-256. (The
/// last, so that nobody can send the text of another key's hash.) Different keys stay different.
/// nullopt: the key is empty, which is no key at all (`idempotency.missing_key`).
[[nodiscard]] std::optional<std::string> make_idempotency_key(std::string raw);

/// What the other side of a call sees of a key: nothing that could be read, and as long for every
/// one; the SHA-256 of both, in hexadecimal digits. The same for every attempt and process.
[[nodiscard]] std::string remote_key(std::string_view scope, std::string_view key);

/// payload_hash of a tombstone.
inline constexpr std::int64_t kTombstoneHash = 0;

/// Tells another payload under a known key from the same one again: the first 8 bytes, big endian,
/// of the value's SHA-256; kTombstoneHash for nullopt (a tombstone), which an empty value is not.
/// Stored beside the key, so it stays as it is for good.
[[nodiscard]] std::int64_t payload_hash(std::optional<std::string_view> value);
[[nodiscard]] std::int64_t payload_hash(const Message& message);

}  // namespace pawl::message
