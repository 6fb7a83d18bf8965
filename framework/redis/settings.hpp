#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::redis {

struct Address {
  std::string host;
  std::uint16_t port = 0;

  /// "host:port"; a numeric IPv6 address stands in brackets.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Address&, const Address&) = default;
};

/// Reads "host:port" and "[::1]:port". Nullopt: it is neither.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

/// An ACL user. Without a password nothing is sent.
struct Credentials {
  std::string user;  ///< empty: "default"
  std::string password;
};

/// The server's certificate is always verified, with the name that it is for.
struct TlsSettings {
  std::string ca_file;      ///< PEM; empty: the system's authorities
  std::string certificate;  ///< PEM, the client's own with its chain; empty: none
  std::string private_key;  ///< PEM, without a passphrase
  std::string server_name;  ///< whom the certificate is for; empty: the host of the address
};

/// Where Redis is: at `address`, or where one of `sentinels` says that the master called `master`
/// is.
struct Settings {
  std::optional<Address> address;
  std::vector<Address> sentinels;
  std::string master;
  Credentials credentials;
  Credentials sentinel_credentials;
  std::uint32_t database = 0;
  std::optional<TlsSettings> tls;  ///< for Redis and Sentinel alike; nullopt: plain TCP
  /// Of connecting to one address, of its TLS handshake, and of the answers to what is sent
  /// together. A server that sends its answer bit by bit has twice as long.
  std::chrono::milliseconds timeout{1000};
};

}  // namespace pawl::redis
