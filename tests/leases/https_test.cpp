// HTTP handlers whose API is behind TLS: whom they trust, and what they show.
#include <signal.h>

#include <fstream>
#include <sstream>

#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"

namespace {

/// An authority, and what it has signed: a server's certificate for localhost, and a client's.
class Certificates {
 public:
  Certificates() {
    make("ca", "-x509 -subj /CN=authority");
    make("other-ca", "-x509 -subj /CN=another");
    make("server",
         "-x509 -CA ca.pem -CAkey ca.key -subj /CN=server -addext "
         "subjectAltName=DNS:localhost");
    make("client", "-x509 -CA ca.pem -CAkey ca.key -subj /CN=payments");
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }

 private:
  void make(const std::string& name, const std::string& how) const {
    std::vector<std::string> arguments{
        "req",    "-newkey",    "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days",      "2",  "-keyout",  name + ".key",
        "-out",   name + ".pem"};
    std::istringstream words(how);
    for (std::string word; words >> word;)
      arguments.push_back(word);
    ChildProcess openssl("openssl", arguments,
                         {.output = path("openssl.log"), .working_directory = folder_.path()});
    if (openssl.wait(60s).code != 0)
      throw std::runtime_error("openssl made no certificate:\n" + openssl.output());
  }

  TempDir folder_;
};

class TlsApi {
 public:
  explicit TlsApi(const Certificates& files)
      : process_("python3",
                 {PAWL_TLS_API, files.path("ca.pem"), files.path("server.pem"),
                  files.path("server.key")},
                 {.output = files.path("api.log")}) {
    process_.wait_for_output("PORT ", 60s);
    std::istringstream(process_.output().substr(process_.output().find("PORT ") + 5)) >> port_;
  }
  ~TlsApi() { process_.kill(SIGKILL); }
  TlsApi(const TlsApi&) = delete;
  TlsApi& operator=(const TlsApi&) = delete;

  [[nodiscard]] std::string url(const std::string& host) const {
    return fmt::format("https://{}:{}/charges", host, port_);
  }
  [[nodiscard]] std::string requests() const {
    const auto all = process_.output();
    const auto first = all.find("REQUEST");
    return first == std::string::npos ? "" : all.substr(first);
  }

 private:
  ChildProcess process_;
  int port_ = 0;
};

}  // namespace

TEST_CASE("an API's certificate is verified, and a client certificate shown") {
  const Certificates files;
  const TlsApi api(files);
  struct Row {
    std::string host;
    std::string ca;
    std::string client;
    std::string letter;  ///< empty: it succeeds
  };
  const auto row = GENERATE(
      Row{"localhost", "ca.pem", "client", ""},
      // Its name is not in the certificate.
      Row{"127.0.0.1", "ca.pem", "client", "nothing was sent"},
      Row{"localhost", "other-ca.pem", "client", "nothing was sent"},
      // The system's authorities do not have it.
      Row{"localhost", "", "client", "nothing was sent"},
      // TLS 1.3: the server refuses behind the handshake, when the request may be under way.
      Row{"localhost", "ca.pem", "", "its answer is not there"});
  CAPTURE(row.host, row.ca, row.client);
  PaymentApi unused(false);
  ChargingWorld charging(1, unused);
  auto& world = charging.world();
  std::string tls;
  if (!row.ca.empty())
    tls += fmt::format(", ca_file = \"{}\"", files.path(row.ca));
  if (!row.client.empty())
    tls += fmt::format(", certificate = \"{}\", private_key = \"{}\"", files.path("client.pem"),
                       files.path("client.key"));
  world.use_handler(
      fmt::format("http = {{ url = \"{}\"{} }}\non_failure = \"dead-letter\"\nmax_attempts = 2",
                  api.url(row.host), tls));
  world.produce_one("event", 1, 0);
  charging.drain();
  if (row.letter.empty()) {
    CHECK(api.requests() == "REQUEST /charges of payments\n");
    CHECK(charging.stored() == "1 1");
    return;
  }
  CHECK(api.requests().empty());
  CHECK_THAT(world.value("SELECT error FROM pawl.dead_letters"), ContainsSubstring(row.letter));
}
