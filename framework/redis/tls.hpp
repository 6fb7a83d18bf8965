#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "redis/settings.hpp"

struct ssl_st;  // OpenSSL's SSL

namespace pawl::redis {

struct TlsDeleter {
  void operator()(ssl_st* session) const noexcept;
};
using TlsSession = std::unique_ptr<ssl_st, TlsDeleter>;

/// A client's TLS session, not connected yet: it verifies the certificate and whom it is for
/// (RFC 9525). Files are read each time, so renewed ones are used. Throws Error (kConnection).
[[nodiscard]] TlsSession make_tls(const TlsSettings& settings, const std::string& host,
                                  std::string_view server);

/// Why the handshake failed, if it was the certificate; else empty.
[[nodiscard]] std::string certificate_problem(const ssl_st* session);

}  // namespace pawl::redis
