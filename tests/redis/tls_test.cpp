#include "certificates.hpp"
#include "errors.hpp"
#include "prelude.hpp"
#include "redis/connection.hpp"
#include "redis_server.hpp"

namespace {

using pawl::redis::Connection;
using pawl::redis::Error;
using pawl::redis::Settings;
using pawl::redis::TlsSettings;

/// A Redis that speaks TLS only, to clients whose certificate its authority has signed.
class TlsServer {
 public:
  explicit TlsServer(const std::string& names)
      : certificate_(authority_.sign("server", names)),
        server_({"tls-cert-file=" + certificate_.file, "tls-key-file=" + certificate_.key,
                 "tls-ca-cert-file=" + authority_.file(), "tls-auth-clients=yes"}) {}

  /// What a client needs that is let in.
  [[nodiscard]] Settings settings() const {
    auto settings = server_.settings();
    const auto own = authority_.sign("client", "DNS:client");
    settings.tls = TlsSettings{authority_.file(), own.file, own.key, ""};
    return settings;
  }
  [[nodiscard]] const Authority& authority() const { return authority_; }

 private:
  Authority authority_{"test authority"};
  Authority::Certificate certificate_;
  RedisServer server_;
};

std::string refusal(const Settings& settings) {
  const auto error = redis_error([&] { return Connection(settings, *settings.address).alive(); });
  if (!error)
    return "";
  CHECK(error->kind() == Error::Kind::kConnection);
  return error->what();
}

}  // namespace

TEST_CASE("TLS verifies both sides") {
  const TlsServer server("DNS:localhost,IP:127.0.0.1");
  const auto good = server.settings();
  Connection connection(good, *good.address);
  CHECK(connection.run({"PING"}).text == "PONG");
  // More than one record each way.
  const std::string large(std::size_t{1} << 20U, 'x');
  (void)connection.run({"SET", "a", large});
  CHECK(connection.run({"GET", "a"}).text == large);

  auto by_name = good;
  by_name.address->host = "localhost";
  CHECK(refusal(by_name).empty());

  auto other_authority = good;
  const Authority other("another authority");
  other_authority.tls->ca_file = other.file();
  CHECK_THAT(refusal(other_authority), ContainsSubstring("TLS connection failed: "));

  auto no_certificate = good;
  no_certificate.tls->certificate.clear();
  CHECK_FALSE(refusal(no_certificate).empty());

  auto plain = good;
  plain.tls.reset();
  CHECK_FALSE(refusal(plain).empty());

  auto missing = good;
  missing.tls->ca_file += ".missing";
  CHECK_THAT(refusal(missing), ContainsSubstring("redis.ca_file"));

  auto mixed = good;
  mixed.tls->private_key = server.authority().sign("other", "DNS:other").key;
  CHECK_THAT(refusal(mixed), ContainsSubstring("redis.private_key"));
}

TEST_CASE("a certificate for another host is refused, unless its name is given") {
  const TlsServer server("DNS:redis.example");
  auto settings = server.settings();
  CHECK_THAT(refusal(settings), ContainsSubstring("mismatch"));
  settings.address->host = "localhost";
  CHECK_THAT(refusal(settings), ContainsSubstring("mismatch"));
  settings.tls->server_name = "redis.example";
  CHECK(refusal(settings).empty());
  settings.tls->server_name = "other.example";
  CHECK_THAT(refusal(settings), ContainsSubstring("mismatch"));
}

TEST_CASE("a server that does not speak TLS is given up") {
  const RedisServer server;
  auto settings = server.settings();
  settings.tls = TlsSettings{};
  // It takes the handshake for a command whose end is to come.
  settings.timeout = 1s;
  CHECK_THAT(refusal(settings), ContainsSubstring("TLS connection failed: "));
}
