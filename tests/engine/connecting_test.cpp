// Connecting to PostgreSQL: which server is tried after which, and that nothing waits without end.
#include "postgres/connecting.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "pawl/testing/postgres_server.hpp"
#include "postgres/error.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using pawl::postgres::ConnectRequest;
using pawl::postgres::listed_servers;
using pawl::postgres::Server;
using pawl::postgres::servers_behind;
using pawl::testing::PostgresServer;

namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

Connection open(const ConnectRequest& request) {
  return {pawl::postgres::connect(request), &PQfinish};
}

/// A server that is stopped: the kernel takes connections in its place, and nobody answers.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, raw, size) != 0 || ::listen(socket_, 16) != 0 ||
        ::getsockname(socket_, raw, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "listen");
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() { ::close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  int socket_;
  int port_ = 0;
};

ConnectRequest request(const std::string& hosts, const std::string& ports) {
  return {"host=" + hosts + " port=" + ports + " user=postgres dbname=postgres", "test", 200ms};
}

std::string real_port() {
  return std::to_string(PostgresServer::shared().port());
}

}  // namespace

TEST_CASE("the servers of a connection string are its hosts, addresses and ports side by side") {
  CHECK(listed_servers("", "", "") == std::vector<Server>{{"", "", ""}});
  CHECK(listed_servers("a", "", "5432") == std::vector<Server>{{"a", "", "5432"}});
  CHECK(listed_servers("a,b", "", "5432") ==
        std::vector<Server>{{"a", "", "5432"}, {"b", "", "5432"}});
  CHECK(listed_servers("a,b", ",10.0.0.2", "1,2") ==
        std::vector<Server>{{"a", "", "1"}, {"b", "10.0.0.2", "2"}});
  CHECK(listed_servers("", "10.0.0.1,10.0.0.2", "") ==
        std::vector<Server>{{"", "10.0.0.1", ""}, {"", "10.0.0.2", ""}});
}

TEST_CASE("behind a silent server come the other addresses of its host, and the servers after it") {
  const std::vector<Server> two{{"a", "", "1"}, {"b", "", "2"}};
  const std::vector<std::string> addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3"};
  CHECK(servers_behind(two, {"a", "10.0.0.1", "1"}, {}) == std::vector<Server>{{"b", "", "2"}});
  CHECK(servers_behind(two, {"a", "10.0.0.2", "1"}, addresses) ==
        std::vector<Server>{{"a", "10.0.0.3", "1"}, {"b", "", "2"}});
  CHECK(servers_behind(two, {"b", "10.0.0.3", "2"}, addresses).empty());
  // An address that the resolver does not give again ends the host's turn.
  CHECK(servers_behind(two, {"a", "10.0.0.9", "1"}, addresses) ==
        std::vector<Server>{{"b", "", "2"}});
  // An address in the string is the only one of its host, whatever the name has.
  const std::vector<Server> same{{"a", "10.0.0.1", "1"}, {"a", "10.0.0.2", "1"}};
  CHECK(servers_behind(same, {"a", "10.0.0.1", "1"}, addresses) ==
        std::vector<Server>{{"a", "10.0.0.2", "1"}});
  CHECK(servers_behind(same, {"a", "10.0.0.2", "1"}, addresses).empty());
  // What the string leaves to libpq.
  CHECK(servers_behind({{"", "", ""}}, {"/run/postgresql", "", "5432"}, {}).empty());
  CHECK(servers_behind(two, {"c", "", "1"}, addresses).empty());
}

TEST_CASE("a server that is silent is passed over") {
  const SilentServer silent;
  // The same twice, so that each of two is given up.
  const auto hosts = std::string("127.0.0.1,127.0.0.1,127.0.0.1");
  const auto connection =
      open(request(hosts, silent.port() + "," + silent.port() + "," + real_port()));
  CHECK(PQstatus(connection.get()) == CONNECTION_OK);
  CHECK(PQport(connection.get()) == real_port());
}

TEST_CASE("all addresses of a name are tried, and what became of each is told") {
  const SilentServer silent;
  CHECK_THROWS_WITH(
      open(request("127.0.0.1", silent.port())),
      ContainsSubstring("127.0.0.1 port " + silent.port() + " did not answer within 0.2 s"));
  CHECK_THROWS_WITH(
      open(request("127.0.0.1,/nowhere", silent.port() + ",1")),
      ContainsSubstring("did not answer within 0.2 s; ") && ContainsSubstring("/nowhere"));
  const auto connection = open(request("127.0.0.1,localhost", silent.port() + "," + real_port()));
  CHECK(PQstatus(connection.get()) == CONNECTION_OK);
}

TEST_CASE("a connect_timeout in the URL counts instead of postgres.connect_timeout") {
  const SilentServer silent;
  auto asked = request("127.0.0.1", silent.port());
  asked.url += " connect_timeout=1";  // which libpq takes for 2
  CHECK_THROWS_WITH(open(asked), ContainsSubstring("did not answer within 2 s"));
}

TEST_CASE("connecting ends once nobody wants the connection") {
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
  CHECK_THROWS_WITH(ended.get(), ContainsSubstring("not needed any more"));
}
