#include "config/listen_address.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace pawl::config {
namespace {

bool is_address(int family, const std::string& text) {
  in6_addr parsed{};  // has room for either
  return ::inet_pton(family, text.c_str(), &parsed) == 1;
}

}  // namespace

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed)
    host = host.substr(1, host.size() - 2);

  ListenAddress address{std::string(host), 0};
  if (!is_address(bracketed ? AF_INET6 : AF_INET, address.host))
    return std::nullopt;
  const auto* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, address.port);
  if (error != std::errc{} || stopped != end || address.port == 0)
    return std::nullopt;
  return address;
}

bool is_numeric_address(const std::string& text) {
  return is_address(AF_INET, text) || is_address(AF_INET6, text);
}

}  // namespace pawl::config
