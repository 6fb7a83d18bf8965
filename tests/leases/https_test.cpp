// HTTP handlers whose API is behind TLS: whom they trust, and what they show.
#include "certificates.hpp"
#include "charging_world.hpp"
#include "prelude.hpp"
#include "process_watch.hpp"
#include "script_server.hpp"

TEST_CASE("an API's certificate is verified, and a client certificate shown") {
  enum class Trusted { kTheApis, kAnother, kTheSystems };
  struct Row {
    std::string host;
    Trusted authority;
    bool shows_certificate;
    std::string letter;  ///< empty: it succeeds
  };
  const auto row = GENERATE(
      Row{"localhost", Trusted::kTheApis, true, ""},
      // Its name is not in the certificate.
      Row{"127.0.0.1", Trusted::kTheApis, true, "nothing was sent"},
      Row{"localhost", Trusted::kAnother, true, "nothing was sent"},
      // The system's authorities do not have it.
      Row{"localhost", Trusted::kTheSystems, true, "nothing was sent"},
      // TLS 1.3: the server refuses behind the handshake, when the request may be under way.
      Row{"localhost", Trusted::kTheApis, false, "its answer is not there"});
  CAPTURE(row.host, row.authority, row.shows_certificate);
  const Authority authority("authority");
  const Authority another("another");
  const auto server = authority.sign("server", "DNS:localhost");
  const auto client = authority.sign("payments", "DNS:payments");
  const ScriptServer api(PAWL_TLS_API, {authority.file(), server.file, server.key});
  PaymentApi unused(false);
  ChargingWorld charging(1, unused);
  auto& world = charging.world();
  std::string tls;
  if (row.authority != Trusted::kTheSystems) {
    tls += fmt::format(", ca_file = \"{}\"",
                       row.authority == Trusted::kTheApis ? authority.file() : another.file());
  }
  if (row.shows_certificate)
    tls += fmt::format(", certificate = \"{}\", private_key = \"{}\"", client.file, client.key);
  world.use_handler(
      fmt::format("http = {{ url = \"https://{}:{}/charges\"{} }}\non_failure = "
                  "\"dead-letter\"\nmax_attempts = 2",
                  row.host, api.port(), tls));
  world.produce_one("event", 1, 0);
  charging.drain();
  if (row.letter.empty()) {
    CHECK(api.log() == "REQUEST /charges of payments\n");
    CHECK(charging.stored() == "1 1");
    return;
  }
  // Beside it stand failed handshakes.
  CHECK_THAT(api.log(), !ContainsSubstring("REQUEST"));
  CHECK_THAT(world.value("SELECT error FROM pawl.dead_letters"), ContainsSubstring(row.letter));
}
