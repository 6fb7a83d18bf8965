#include "dashboard/access.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/listen_address.hpp"
#include "console/printable.hpp"
#include "message/digest.hpp"
#include "message/hexadecimal.hpp"
#include "pawl/errors.hpp"

namespace pawl::dashboard {
namespace {

constexpr std::size_t kLongestName = 80;
/// What the name of a known browser begins with.
const std::string kBrowser = "browser ";
constexpr const char* kForeign =
    "The form was not sent by this page. Nothing was changed. Reload the page and repeat the "
    "action.";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// As connections name it: one way to write it, and what is mapped of version 4 as that (RFC 4291,
/// section 2.5.5.2). What is no address stays.
std::string plain_address(const std::string& text) {
  std::array<char, INET6_ADDRSTRLEN> plain{};
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1)
    return text;
  if (IN6_IS_ADDR_V4MAPPED(&six) != 0) {
    ::inet_ntop(AF_INET, &six.s6_addr[12], plain.data(), plain.size());
  } else {
    ::inet_ntop(AF_INET6, &six, plain.data(), plain.size());
  }
  return plain.data();
}

/// Of "http://name:port".
std::string authority(const std::string& origin) {
  const auto slashes = origin.find("://");
  return slashes == std::string::npos ? std::string{} : origin.substr(slashes + 3);
}

}  // namespace

std::optional<std::string> refusal(const Origin& request, const ops::HostNames& names) {
  if (!request.proxied) {
    if (auto why = names.refusal(request.host))
      return why;
  }
  if (request.method != "POST")
    return std::nullopt;
  if (!request.fetch_site.empty() && request.fetch_site != "same-origin")
    return kForeign;
  if (request.origin.empty())
    return std::nullopt;  // not a browser of these years; the form's key is checked all the same
  const auto from = lower(authority(request.origin));
  const bool same = from == lower(request.host) ||
                    (request.proxied && !from.empty() && from == lower(request.forwarded_host));
  if (!same)
    return kForeign;
  return std::nullopt;
}

std::optional<std::string> repeated_header(
    const std::function<std::size_t(const std::string& name)>& count,
    const std::string& actor_header) {
  for (const auto& name :
       {std::string("Authorization"), std::string("Cookie"), std::string("Origin"),
        std::string("Sec-Fetch-Site"), std::string("X-Forwarded-Host"), actor_header}) {
    if (count(name) > 1)
      return name;
  }
  return std::nullopt;
}

bool same_secret(const std::string& one, const std::string& other) {
  // Digests have one length, and say nothing about what they are of.
  const auto left = message::sha256(one);
  const auto right = message::sha256(other);
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw FatalError(
        "OpenSSL cannot generate random numbers. Check the random number source of the system");
  return message::hexadecimal({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Access::Access(const MonitoringOptions& options)
    : options_(options), proxy_(plain_address(options.trusted_proxy)), secret_(random_secret()) {}

bool Access::is_proxy(const std::string& peer, const std::string& authorization) const {
  return by_token() && !proxy_.empty() && peer == proxy_ &&
         same_secret(authorization, "Bearer " + options_.actions_token);
}

std::optional<Actor> Access::find(bool proxied, const std::string& actor_header,
                                  const std::string& session, Clock::time_point now) {
  if (proxied) {
    if (const auto name = clean_name(actor_header); !name.empty()) {
      return Actor{name, seal("person " + name), false};
    }
  }
  if (session.empty())
    return std::nullopt;
  const std::scoped_lock lock(mutex_);
  std::erase_if(sessions_, [&](const auto& s) { return now - s.second.begun >= kSessionTime; });
  // By the digest: a search by the secret itself would tell by its time where it differs.
  const auto found = sessions_.find(message::sha256_hex(session));
  if (found == sessions_.end())
    return std::nullopt;
  return found->second.actor;
}

std::string Access::seal(const std::string& text) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  return message::hexadecimal({reinterpret_cast<const char*>(digest.data()), size});
}

Client Access::client(const std::string& peer, const std::string& forwarded_for,
                      const std::string& browser) const {
  if (const auto dot = browser.find('.'); dot != std::string::npos) {
    auto name = kBrowser + browser.substr(0, dot);
    if (same_secret(browser.substr(dot + 1), seal(name)))
      return {std::move(name), true};
  }
  // By the address alone: a proxy that only speaks TLS has no token, and its word is good for a
  // count.
  if (!proxy_.empty() && peer == proxy_) {
    const auto begin = forwarded_for.find_last_of(", \t");
    auto address = plain_address(forwarded_for.substr(begin + 1));
    if (config::is_numeric_address(address))
      return {std::move(address)};
  }
  return {peer};
}

Access::SignedIn Access::sign_in(const Client& client, const std::string& token,
                                 const std::string& name, Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  while (!wrong_tries_.empty() && now - wrong_tries_.front().first >= kTryTime)
    wrong_tries_.pop_front();
  const auto of_client = std::ranges::count(wrong_tries_, client.name,
                                            &std::pair<Clock::time_point, std::string>::second);
  if (static_cast<std::size_t>(of_client) >= kMostTries ||
      (!client.known && wrong_tries_.size() >= kMostTriesOfAll))
    return {SignIn::kTooOften, "", ""};
  if (!by_token() || !same_secret(token, options_.actions_token)) {
    wrong_tries_.emplace_back(now, client.name);
    return {SignIn::kWrong, "", ""};
  }
  auto cleaned = clean_name(name);
  if (cleaned.empty())
    return {SignIn::kNameless, "", ""};
  if (sessions_.size() >= kMostSessions) {
    sessions_.erase(std::ranges::min_element(
        sessions_, {}, [](const auto& session) { return session.second.begun; }));
  }
  auto session = random_secret();
  sessions_[message::sha256_hex(session)] = {{std::move(cleaned), random_secret(), true}, now};
  const auto id = client.known ? client.name.substr(kBrowser.size()) : random_secret();
  return {SignIn::kDone, std::move(session), id + "." + seal(kBrowser + id)};
}

void Access::sign_out(const std::string& session) {
  const std::scoped_lock lock(mutex_);
  sessions_.erase(message::sha256_hex(session));
}

std::string clean_name(const std::string& name) {
  auto text = cli::printable(name);
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos)
    return {};
  text = text.substr(begin, text.find_last_not_of(' ') - begin + 1);
  return std::string(cli::head(text, kLongestName));
}

std::string cookie(const std::string& header, const std::string& name) {
  std::string_view rest = header;
  while (!rest.empty()) {
    const auto end = rest.find(';');
    auto pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    while (pair.starts_with(' '))
      pair.remove_prefix(1);
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name)
      return std::string(pair.substr(equals + 1));
  }
  return {};
}

}  // namespace pawl::dashboard
