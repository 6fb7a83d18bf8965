#pragma once

#include <string_view>

namespace pawl::texts {

/// Is shown in the place of a value that may be a secret.
inline constexpr const char* kHidden = "***";

/// Whether a value may be a secret, by the name of its member of JSON or of its field of a form:
/// "client_secret", "apiKey", "accessToken". The names are those that APIs use for passwords,
/// tokens, keys, and signatures, in any case, and with any separators.
[[nodiscard]] bool may_be_secret(std::string_view name);

}  // namespace pawl::texts
