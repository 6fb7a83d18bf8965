#include "redis/tls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

#include "redis/error.hpp"

namespace pawl::redis {
namespace {

struct ContextDeleter {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};

std::string last_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

void TlsDeleter::operator()(ssl_st* session) const noexcept {
  SSL_free(session);
}

TlsSession make_tls(const TlsSettings& settings, const std::string& host, std::string_view server) {
  const auto require = [&](bool done, std::string_view what) {
    if (!done)
      throw Error(Error::Kind::kConnection, fmt::format("{}: {}: {}", server, what, last_reason()));
  };
  ERR_clear_error();
  const std::unique_ptr<SSL_CTX, ContextDeleter> context(SSL_CTX_new(TLS_client_method()));
  require(context != nullptr, "no TLS");
  require(SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1, "no TLS 1.2");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // OpenSSL would ask for a passphrase on the terminal.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  if (settings.ca_file.empty()) {
    require(SSL_CTX_set_default_verify_paths(context.get()) == 1,
            "the certificate authorities of the system cannot be read");
  } else {
    require(SSL_CTX_load_verify_locations(context.get(), settings.ca_file.c_str(), nullptr) == 1,
            fmt::format("redis.ca_file {} cannot be read", settings.ca_file));
  }
  if (!settings.certificate.empty()) {
    require(SSL_CTX_use_certificate_chain_file(context.get(), settings.certificate.c_str()) == 1,
            fmt::format("redis.certificate {} cannot be read", settings.certificate));
    require(SSL_CTX_use_PrivateKey_file(context.get(), settings.private_key.c_str(),
                                        SSL_FILETYPE_PEM) == 1,
            fmt::format("redis.private_key {} cannot be read, or belongs to another certificate",
                        settings.private_key));
  }
  TlsSession session(SSL_new(context.get()));
  require(session != nullptr, "no TLS");
  const auto& name = settings.server_name.empty() ? host : settings.server_name;
  if (is_numeric(name)) {
    require(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), name.c_str()) == 1,
            "its address cannot be verified");
  } else {
    require(SSL_set1_host(session.get(), name.c_str()) == 1, "its name cannot be verified");
    require(SSL_set_tlsext_host_name(session.get(), name.c_str()) == 1, "its name cannot be sent");
  }
  return session;
}

std::string certificate_problem(const ssl_st* session) {
  const auto result = SSL_get_verify_result(session);
  return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}

}  // namespace pawl::redis
