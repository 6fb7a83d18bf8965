#include "ops/http_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "free_port.hpp"
#include "pawl/errors.hpp"
#include "prelude.hpp"

using namespace pawl::ops;
using pawl::config::ListenAddress;

namespace {

/// A connection of a client's.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  ~Client() {
    if (socket_ >= 0)
      ::close(socket_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;

  void send(const std::string& text) const {
    (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Up to where the server ends the connection.
  std::string receive() const {
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(got));
    return all;
  }
  std::string ask(const std::string& request) const {
    send(request);
    return receive();
  }

 private:
  int socket_;
};

const std::string kGet = "GET /path?query HTTP/1.1\r\nHost: a\r\n\r\n";

struct Served {
  explicit Served(const Pages& pages = {}) {
    while (!server) {
      port = pawl::test::free_port();
      try {
        server = std::make_unique<HttpServer>(
            ListenAddress{"127.0.0.1", port},
            [this](const HttpRequest& request) {
              ++calls;
              return HttpAnswer{request.method == "POST" ? 405 : 200, "text/plain",
                                request.method + " " + request.path};
            },
            pages);
      } catch (const FatalError&) {
        continue;  // somebody has the port
      }
    }
  }

  std::atomic<int> calls{0};
  std::uint16_t port = 0;
  std::unique_ptr<HttpServer> server;
};

}  // namespace

TEST_CASE("whatever ranges are asked for, all is sent once") {
  const Served served;
  const std::string head = "GET /path HTTP/1.1\r\nHost: a\r\nRange: bytes=";
  for (const std::string ranges : {"0-1", "0-,0-,0-,0-,0-,0-"}) {
    const auto answer = Client(served.port).ask(head + ranges + "\r\n\r\n");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200 ") && ContainsSubstring("Content-Length: 9\r\n") &&
                           EndsWith("\r\n\r\nGET /path"));
  }
}

TEST_CASE("a request is answered, and its connection ended") {
  const Served served;
  CHECK_THAT(Client(served.port).ask(kGet), StartsWith("HTTP/1.1 200 OK\r\n") &&
                                                ContainsSubstring("Connection: close\r\n") &&
                                                EndsWith("\r\n\r\nGET /path"));
  CHECK_THAT(Client(served.port).ask("HEAD /a HTTP/1.1\r\n\r\n"),
             StartsWith("HTTP/1.1 200 OK\r\n") && ContainsSubstring("Content-Length: 7\r\n") &&
                 EndsWith("\r\n\r\n"));
}

TEST_CASE("what is no small request reaches nobody, or is refused unread") {
  Served served;
  CHECK_THAT(Client(served.port).ask("POST /a HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n"),
             StartsWith("HTTP/1.1 405 ") && ContainsSubstring("Allow: GET, HEAD\r\n"));
  served.calls = 0;
  CHECK_THAT(Client(served.port).ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(Client(served.port).ask("GET /" + std::string(100000, 'a') + " HTTP/1.1\r\n\r\n"),
             !StartsWith("HTTP/1.1 200 "));
  CHECK(served.calls == 0);
}

TEST_CASE("a head is bounded in its line, its headers, their number and their sum") {
  Served served;
  const auto headers = [](int count, std::size_t size) {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += "X-" + std::to_string(i) + ": " + std::string(size, 'a') + "\r\n";
    return all;
  };
  const std::string line = "GET /path HTTP/1.1\r\n";
  CHECK_THAT(Client(served.port).ask(line + headers(100, 100) + "\r\n"),
             StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(Client(served.port).ask(line + headers(3, 8000) + "\r\n"),
             StartsWith("HTTP/1.1 200 "));
  served.calls = 0;
  CHECK_THAT(Client(served.port).ask(line + headers(101, 1) + "\r\n"), StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(Client(served.port).ask(line + headers(1, 8192) + "\r\n"),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(Client(served.port).ask(line + headers(5, 8000) + "\r\n"),
             !StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(
      Client(served.port).ask("GET /" + std::string(8192, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"),
      StartsWith("HTTP/1.1 414 "));
  CHECK(served.calls == 0);
}

TEST_CASE("a request that is compressed is refused unread, and no answer is compressed") {
  std::atomic<int> pages{0};
  Served served({[](const std::string& path) { return path.starts_with("/page"); },
                 [&](const HttpRequest& request) {
                   ++pages;
                   return HttpAnswer{
                       200, "text/html",
                       std::string(4096, 'a') + "<" + request.header("Accept-Encoding") + ">"};
                 }});
  for (const std::string head :
       {"POST /page HTTP/1.1\r\nContent-Length: 3\r\n", "GET /page HTTP/1.1\r\n",
        "GET /metrics HTTP/1.1\r\n", "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n"}) {
    for (const std::string encoding : {"br", "gzip", "zstd", "identity", "%62r"}) {
      INFO(head << encoding);
      CHECK_THAT(Client(served.port).ask(head + "Content-Encoding: " + encoding + "\r\n\r\nabc"),
                 StartsWith("HTTP/1.1 415 ") && ContainsSubstring("Accept-Encoding: identity\r\n"));
    }
  }
  CHECK(pages == 0);
  CHECK(served.calls == 0);
  CHECK_THAT(Client(served.port)
                 .ask("GET /page HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br, gzip, zstd\r\n\r\n"),
             StartsWith("HTTP/1.1 200 ") && EndsWith("aaa<>"));
}

TEST_CASE("headers are taken as they came, and counted") {
  Served served({[](const std::string&) { return true; },
                 [](const HttpRequest& request) {
                   return HttpAnswer{200, "text/plain",
                                     request.header("x-name") + "|" + request.header("X-Empty") +
                                         "|" + std::to_string(request.count("X-NAME")) + "|" +
                                         std::to_string(request.count("X-None")) + "|" +
                                         request.body + request.header("X-Forwarded-For")};
                 }});
  CHECK_THAT(
      Client(served.port)
          .ask("POST /?a=%41 HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nX-Name: \t ann%61: 1%20 "
               "\r\nX-Empty:\r\n\r\nX-None: "),
      EndsWith("\r\n\r\nann%61: 1%20||1|0|X-None: "));
  CHECK_THAT(Client(served.port).ask("GET / HTTP/1.1\r\nX-Name: a\r\nx-name: b\r\nHost: a\r\n\r\n"),
             EndsWith("||2|0|"));
  CHECK_THAT(Client(served.port).ask("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"),
             StartsWith("HTTP/1.1 400 "));
  // The list of proxies stays in its order.
  CHECK_THAT(Client(served.port)
                 .ask("GET / HTTP/1.1\r\nX-Forwarded-For: c, b\r\nHost: a\r\n"
                      "x-forwarded-for: d\r\nX-Forwarded-For: a\r\n\r\n"),
             EndsWith("||0|0|c, b, d, a"));
}

TEST_CASE(
    "clients that say nothing hold up others for seconds, and the server's end for no longer") {
  Served served;
  std::vector<Client> silent;
  for (int i = 0; i < 8; ++i)
    silent.emplace_back(served.port);
  const Client slow(served.port);
  slow.send("GET /slow HT");
  CHECK_THAT(Client(served.port).ask(kGet), StartsWith("HTTP/1.1 200 OK\r\n"));
  for (int i = 0; i < 3; ++i)
    silent.emplace_back(served.port);
  served.server->finish();
  served.server.reset();
  CHECK(silent.back().receive() == "");
}

TEST_CASE("a client whose bytes trickle is not waited for") {
  const Served served;
  const Client slow(served.port);
  std::atomic<bool> ended{false};
  // Each byte is soon there, the request never.
  std::thread trickle([&] {
    slow.send("GET /slow HTTP/1.1\r\nX: ");
    while (!ended) {
      slow.send("a");
      std::this_thread::yield();
    }
  });
  CHECK_THAT(slow.receive(), !StartsWith("HTTP/1.1 200 "));
  ended = true;
  trickle.join();
  CHECK(served.calls == 0);
}

TEST_CASE("pages never have all threads, and take small forms alone") {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool go_on = false;
  std::uint16_t port = 0;
  std::unique_ptr<HttpServer> server;
  while (!server) {
    port = pawl::test::free_port();
    try {
      server = std::make_unique<HttpServer>(
          ListenAddress{"127.0.0.1", port},
          [](const HttpRequest&) { return HttpAnswer{200, "text/plain", "for programs"}; },
          Pages{[](const std::string& path) { return path != "/live"; },
                [&](const HttpRequest& request) {
                  std::unique_lock lock(mutex);
                  ++inside;
                  changed.notify_all();
                  if (request.path == "/wait")
                    changed.wait(lock, [&] { return go_on; });
                  return HttpAnswer{200,
                                    "text/plain",
                                    request.method + " " + request.query + " " + request.body +
                                        " " + request.peer + " " + request.header("host"),
                                    {{"X-More", "yes"}}};
                }});
    } catch (const FatalError&) {
      continue;  // somebody has the port
    }
  }
  CHECK_THAT(Client(port).ask("GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n"),
             ContainsSubstring("X-More: yes\r\n") && EndsWith("\r\n\r\nGET b=c  127.0.0.1 h"));
  CHECK_THAT(Client(port).ask("POST /a HTTP/1.1\r\nHost: h\r\nContent-Type: "
                              "application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\nx=y"),
             EndsWith("\r\n\r\nPOST  x=y 127.0.0.1 h"));
  // The head is enough to refuse it.
  for (const std::string length : {"8193", "100000000", "18446744073709551616"}) {
    INFO(length);
    CHECK_THAT(Client(port).ask("POST /a HTTP/1.1\r\nContent-Length: " + length + "\r\n\r\n"),
               StartsWith("HTTP/1.1 413 "));
  }
  CHECK_THAT(Client(port).ask("POST /a HTTP/1.1\r\nContent-Type: "
                              "application/x-www-form-urlencoded\r\nContent-Length: 8192\r\n\r\n" +
                              std::string(8192, 'x')),
             StartsWith("HTTP/1.1 200 "));
  CHECK_THAT(Client(port).ask("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
             StartsWith("HTTP/1.1 411 "));
  CHECK_THAT(Client(port).ask("PUT /a HTTP/1.1\r\nContent-Length: 100000000\r\n\r\n"),
             StartsWith("HTTP/1.1 405 ") && ContainsSubstring("Allow: GET, HEAD, POST\r\n"));

  std::vector<Client> waiting;
  {
    std::unique_lock lock(mutex);
    inside = 0;
  }
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(port);
    waiting.back().send("GET /wait HTTP/1.1\r\n\r\n");
  }
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return inside == 4; }));
  }
  CHECK_THAT(Client(port).ask("GET /wait HTTP/1.1\r\n\r\n"),
             StartsWith("HTTP/1.1 503 ") && ContainsSubstring("Retry-After: 1\r\n"));
  CHECK_THAT(Client(port).ask("GET /live HTTP/1.1\r\n\r\n"), EndsWith("for programs"));
  {
    const std::scoped_lock lock(mutex);
    go_on = true;
    changed.notify_all();
  }
  for (const auto& client : waiting)
    CHECK_THAT(client.receive(), StartsWith("HTTP/1.1 200 "));
}

TEST_CASE("a port that somebody has is refused, and the option is named") {
  const Served served;
  CHECK_THROWS_WITH(
      HttpServer(ListenAddress{"127.0.0.1", served.port},
                 [](const HttpRequest&) { return HttpAnswer{}; }),
      StartsWith("monitoring.listen = \"127.0.0.1:" + std::to_string(served.port) + "\": ") &&
          ContainsSubstring("Address already in use"));
}
