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
      Row{"127.0.0.1", Trusted::kTheApis, true, "no request was sent"},
      Row{"localhost", Trusted::kAnother, true, "no request was sent"},
      // The system's authorities do not have it.
      Row{"localhost", Trusted::kTheSystems, true, "no request was sent"},
      // TLS 1.3: the server refuses behind the handshake, when the request may be under way.
      Row{"localhost", Trusted::kTheApis, false, "no response was received"});
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
  if (row.letter == "no request was sent") {
    // That is an outage: the message waits.
    const auto process = charging.start();
    const ShowOnFailure show("consumer", *process);
    process->wait_for_output("EVENT remote_service_unreachable", 60s);
    CHECK_THAT(process->output(), ContainsSubstring(row.letter));
    CHECK_THAT(api.log(), !ContainsSubstring("REQUEST"));
    CHECK(world.number("SELECT count(*) FROM pawl.dead_letters") == 0);
    return;
  }
  charging.drain();
  if (row.letter.empty()) {
    CHECK(api.log() == "CONNECTION TLSv1.3\nREQUEST /charges of payments\n");
    CHECK(charging.stored() == "1 1");
    return;
  }
  // Beside it stand failed handshakes.
  CHECK_THAT(api.log(), !ContainsSubstring("REQUEST"));
  CHECK_THAT(world.value("SELECT error FROM pawl.dead_letters"), ContainsSubstring(row.letter));
}

TEST_CASE("a TLS connection is kept, and never for a response that is left in it") {
  struct Row {
    std::string path;
    std::size_t connections;
  };
  // TLS 1.3: session tickets come behind the handshake, and are no response.
  const auto row = GENERATE(Row{"charges", 1}, Row{"surplus", 5});
  CAPTURE(row.path);
  const Authority authority("authority");
  const auto server = authority.sign("server", "DNS:localhost");
  const auto client = authority.sign("payments", "DNS:payments");
  const ScriptServer api(PAWL_TLS_API, {authority.file(), server.file, server.key});
  PaymentApi unused(false);
  ChargingWorld charging(1, unused);
  auto& world = charging.world();
  world.use_handler(fmt::format(
      "http = {{ url = \"https://localhost:{}/{}\", ca_file = \"{}\", certificate = \"{}\", "
      "private_key = \"{}\" }}\non_failure = \"dead-letter\"",
      api.port(), row.path, authority.file(), client.file, client.key));
  for (int i = 0; i < 5; ++i)
    world.produce_one(fmt::format("event-{}", i), 1, 0);
  charging.drain();
  CHECK(charging.stored() == "5 5");
  const auto log = api.log();
  std::size_t connections = 0;
  for (auto at = log.find("CONNECTION TLSv1.3"); at != std::string::npos;
       at = log.find("CONNECTION TLSv1.3", at + 1))
    ++connections;
  CHECK(connections == row.connections);
}
