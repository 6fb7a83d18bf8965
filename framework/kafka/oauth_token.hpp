#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pawl::kafka {

/// What kafka.oauth_token_command has printed.
struct OauthToken {
  std::string value;
  /// The claim "sub" of a JWT; else "pawl". Only for librdkafka's own texts: the broker has its own
  /// way to find out who a token is for.
  std::string principal;
  std::int64_t expires_ms = 0;  ///< since 1970
  /// SASL extensions (RFC 7628, section 3.1), each a name and a value.
  std::vector<std::pair<std::string, std::string>> extensions;
};

/// Reads a token response (RFC 6749, section 5.1), such as
/// {"access_token": "...", "expires_in": 120}, also with "extensions": {"name": "value"}; or a
/// token alone, which is a JWT then (RFC 7519), whose "exp" says when it ends. Where both say so,
/// what comes first counts. `asked_ms`: when the command was started. Throws std::invalid_argument
/// with what is wrong, for people; it quotes nothing of the text, which is secret.
[[nodiscard]] OauthToken read_oauth_token(std::string_view printed, std::int64_t asked_ms);

}  // namespace pawl::kafka
