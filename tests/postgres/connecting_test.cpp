// Connecting to PostgreSQL: that silent servers are passed over, and nothing waits without end.
#include "postgres/connecting.hpp"

#include <atomic>
#include <future>

#include "loopback_listener.hpp"
#include "postgres/connect_advice.hpp"
#include "postgres/error.hpp"
#include "prelude.hpp"

using namespace pawl::postgres;

namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

Connection open(const ConnectRequest& request) {
  return {pawl::postgres::connect(request), &PQfinish};
}

/// A server that is stopped: the kernel takes connections in its place, and nobody answers.
class SilentServer {
 public:
  [[nodiscard]] std::string port() const { return std::to_string(listener_.port()); }

 private:
  LoopbackListener listener_{16};
};

ConnectRequest request(const std::string& hosts, const std::string& ports) {
  return {"host=" + hosts + " port=" + ports + " user=postgres dbname=postgres", "test", 200ms};
}

/// With time for a server that does respond, on a machine that is busy.
ConnectRequest patient(ConnectRequest request) {
  request.timeout = 3s;
  return request;
}

std::string real_port() {
  return std::to_string(PostgresServer::shared().port());
}

}  // namespace

TEST_CASE("a server that is silent is passed over") {
  const SilentServer silent;
  // The same twice, so that each of two is given up.
  const auto hosts = std::string("127.0.0.1,127.0.0.1,127.0.0.1");
  const auto connection =
      open(patient(request(hosts, silent.port() + "," + silent.port() + "," + real_port())));
  CHECK(PQstatus(connection.get()) == CONNECTION_OK);
  CHECK(PQport(connection.get()) == real_port());
}

TEST_CASE("all addresses of a name are tried, and what became of each is told") {
  const SilentServer silent;
  CHECK_THROWS_WITH(
      open(request("127.0.0.1", silent.port())),
      ContainsSubstring("127.0.0.1 port " + silent.port() + " did not respond within 0.2 s"));
  CHECK_THROWS_WITH(
      open(request("127.0.0.1,/nowhere", silent.port() + ",1")),
      ContainsSubstring("did not respond within 0.2 s; ") && ContainsSubstring("/nowhere"));
  const auto connection =
      open(patient(request("127.0.0.1,localhost", silent.port() + "," + real_port())));
  CHECK(PQstatus(connection.get()) == CONNECTION_OK);
}

TEST_CASE("a report of libpq's is told without the question in it") {
  CHECK_THROWS_WITH(open(request("127.0.0.1", "1")), EndsWith("failed: Connection refused"));
  CHECK_THROWS_WITH(open(request("/nowhere", "1")), EndsWith("failed: No such file or directory"));
  CHECK_THROWS_WITH(open(request("127.0.0.1,/nowhere", "1")),
                    ContainsSubstring("failed: Connection refused connection to") &&
                        EndsWith("failed: No such file or directory"));
}

TEST_CASE("a connect_timeout in the URL counts instead of postgres.connect_timeout") {
  const SilentServer silent;
  auto asked = request("127.0.0.1", silent.port());
  asked.url += " connect_timeout=1";  // which libpq takes for 2
  CHECK_THROWS_WITH(open(asked), ContainsSubstring("did not respond within 2 s"));
}

TEST_CASE("a connection string that libpq cannot read fails until it is corrected") {
  const auto* url = GENERATE("postgresql://app:n3w@pass/100%@db/p", "postgresql://app:100%@db/p",
                             "host=db password='open", "host=db port=none", "n3w", "mysql://db/p");
  CAPTURE(url);
  try {
    (void)open({url, "test", 200ms, nullptr, {}, "/run/secrets/pw"});
    FAIL("connected");
  } catch (const Error& error) {
    CHECK_THAT(error.what(),
               StartsWith("postgres.url: ") && !ContainsSubstring("n3w") &&
                   EndsWith(" (from /run/secrets/pw, which pawl reads at each connect, "
                            "without a restart)"));
    CHECK(error.failure() == FailureClass::kConnection);
    CHECK_FALSE(correction(error.what()).empty());
  }
}

TEST_CASE("connecting stops once the connection is no longer needed") {
  const SilentServer silent;
  const bool before = GENERATE(true, false);
  CAPTURE(before);
  std::atomic<bool> unwanted{before};
  auto asked = request("127.0.0.1", silent.port());
  asked.timeout = 24h;
  asked.unwanted = &unwanted;
  auto ended = std::async(std::launch::async, [&asked] { return open(asked); });
  unwanted = true;
  REQUIRE(ended.wait_for(60s) == std::future_status::ready);
  CHECK_THROWS_WITH(ended.get(), ContainsSubstring("no longer needed"));
}
