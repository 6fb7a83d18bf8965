#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::config {

/// Where a server listens: numbers, so that no name has to be looked up.
struct ListenAddress {
  std::string host;  ///< an IPv4 or IPv6 address, without brackets
  std::uint16_t port = 0;

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// "127.0.0.1:9464" or "[::1]:9464"; nullopt: it is neither.
[[nodiscard]] std::optional<ListenAddress> parse_listen_address(std::string_view text);

/// Whether it is an IPv4 or IPv6 address in numbers, without brackets and port.
[[nodiscard]] bool is_numeric_address(const std::string& text);

}  // namespace pawl::config
