#include "text/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace pawl::texts {
namespace {

constexpr std::array<std::string_view, 14> kParts{
    "password",  "passwd",     "passphrase",    "passcode",   "secret", "token",     "apikey",
    "accesskey", "privatekey", "authorization", "credential", "cookie", "signature", "sessionid"};
/// A part of many other words: these are whole names.
constexpr std::array<std::string_view, 9> kNames{"auth", "bearer", "jwt", "otp", "pass",
                                                 "pin",  "pw",     "pwd", "sig"};

/// "X-Api-Key" and "apiKey" are one name.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const auto c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

}  // namespace

bool may_be_secret(std::string_view name) {
  const auto letters = letters_of(name);
  return std::ranges::find(kNames, letters) != kNames.end() ||
         std::ranges::any_of(kParts,
                             [&](auto part) { return letters.find(part) != std::string::npos; });
}

}  // namespace pawl::texts
