#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pawl::message {

using Sha256 = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4). Any thread. Throws FatalError when OpenSSL refuses to compute it.
[[nodiscard]] Sha256 sha256(std::string_view bytes);

/// The same as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace pawl::message
