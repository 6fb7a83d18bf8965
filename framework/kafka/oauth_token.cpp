#include "kafka/oauth_token.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "message/base64.hpp"

namespace pawl::kafka {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSpace = " \t\r\n";
/// Of any token's life, in seconds: beyond it librdkafka's microseconds would overflow.
constexpr std::int64_t kLongest = std::int64_t{1} << 40U;

std::string_view trimmed(std::string_view text) {
  const auto start = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(start, text.find_last_not_of(kSpace) + 1 - start);
}

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

/// A discarded value where it is no JSON object.
Json object_of(std::string_view text) {
  auto json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json(Json::value_t::discarded);
}

/// Seconds, as a number or, as some servers have it, a text of digits.
std::optional<std::int64_t> seconds_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end())
    return std::nullopt;
  double seconds = -1;
  if (found->is_number()) {
    seconds = found->get<double>();
  } else if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
    if (error == std::errc{} && end == text.data() + text.size())
      seconds = static_cast<double>(whole);
  }
  if (!(seconds > 0 && seconds < static_cast<double>(kLongest)))
    throw std::invalid_argument(std::string("its \"") + name + "\" is not a number of seconds");
  return static_cast<std::int64_t>(seconds);
}

/// The claims of a JWT, which nobody verifies here; a discarded value where it is none.
Json claims_of(const std::string& token) {
  const auto first = token.find('.');
  const auto second = first == std::string::npos ? first : token.find('.', first + 1);
  if (second == std::string::npos)
    return Json::value_t::discarded;
  // base64url without padding (RFC 7515, section 2).
  auto payload = token.substr(first + 1, second - first - 1);
  std::replace(payload.begin(), payload.end(), '-', '+');
  std::replace(payload.begin(), payload.end(), '_', '/');
  payload.append((4 - payload.size() % 4) % 4, '=');
  try {
    return object_of(message::from_base64(payload));
  } catch (const std::invalid_argument&) {
    return Json::value_t::discarded;
  }
}

std::vector<std::pair<std::string, std::string>> extensions_of(const Json& response) {
  std::vector<std::pair<std::string, std::string>> extensions;
  const auto found = response.find("extensions");
  if (found == response.end())
    return extensions;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_shown = [](char c) { return c >= ' ' && c < 0x7f; };
  for (const auto& [name, value] : found->items()) {
    const bool named =
        !name.empty() && name != "auth" && std::all_of(name.begin(), name.end(), is_letter);
    if (!found->is_object() || !named || !value.is_string() ||
        !std::ranges::all_of(value.get_ref<const std::string&>(), is_shown)) {
      throw std::invalid_argument(
          "its \"extensions\" is not an object of strings with alphabetic names");
    }
    extensions.emplace_back(name, value.get<std::string>());
  }
  return extensions;
}

}  // namespace

OauthToken read_oauth_token(std::string_view printed, std::int64_t asked_ms) {
  const auto text = trimmed(printed);
  if (text.empty())
    throw std::invalid_argument("it printed nothing");
  OauthToken token;
  auto expires = std::numeric_limits<std::int64_t>::max();
  if (text.starts_with('{')) {
    const auto response = object_of(text);
    if (response.is_discarded())
      throw std::invalid_argument("it printed a { that does not start a JSON object");
    const auto value = response.find("access_token");
    if (value == response.end() || !value->is_string())
      throw std::invalid_argument("its JSON object has no \"access_token\"");
    token.value = value->get<std::string>();
    if (const auto seconds = seconds_of(response, "expires_in"))
      expires = asked_ms + *seconds * 1000;
    token.extensions = extensions_of(response);
  } else {
    token.value = text;
  }
  if (!is_token(token.value)) {
    throw std::invalid_argument(
        "it printed neither a JSON object with \"access_token\" nor a token alone");
  }
  const auto claims = claims_of(token.value);
  if (claims.is_object()) {
    if (const auto exp = seconds_of(claims, "exp"))
      expires = std::min(expires, *exp * 1000);
    if (const auto sub = claims.find("sub"); sub != claims.end() && sub->is_string())
      token.principal = sub->get<std::string>();
  }
  if (expires == std::numeric_limits<std::int64_t>::max()) {
    throw std::invalid_argument(
        "its token has no expiry. Print {\"access_token\": ..., \"expires_in\": SECONDS}, or a JWT "
        "with \"exp\"");
  }
  if (expires <= asked_ms)
    throw std::invalid_argument("its token has already expired. Compare the clocks");
  token.expires_ms = expires;
  if (!is_token(token.principal))
    token.principal = "pawl";
  return token;
}

}  // namespace pawl::kafka
