// A call over HTTP that is told to stop: when it ends, and what it says then.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <future>
#include <stop_token>
#include <thread>

#include "handlers/http/http_connection.hpp"
#include "handlers/http/http_handler.hpp"
#include "pawl/lease.hpp"
#include "prelude.hpp"

namespace {

using pawl::NotDone;
using pawl::handlers::ConnectionState;
using pawl::handlers::HttpHandler;
using pawl::handlers::line_for_curl;
using pawl::handlers::may_reuse;
using pawl::handlers::UnknownAnswer;

/// A wait of accept() or recv() on the socket fails after a minute, so that no test hangs.
void limit_waits(int socket) {
  const timeval limit{60, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/// A server of one connection, which does what a test says with it.
class OneConnection {
 public:
  /// `backlog`: of connections that nobody accepts.
  explicit OneConnection(int backlog = 1)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, backlog) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    limit_waits(listener_);
  }
  ~OneConnection() {
    if (socket_ >= 0)
      ::close(socket_);
    ::close(listener_);
  }
  OneConnection(const OneConnection&) = delete;
  OneConnection& operator=(const OneConnection&) = delete;

  [[nodiscard]] int port() const { return port_; }
  void accept() {
    socket_ = ::accept(listener_, nullptr, nullptr);
    limit_waits(socket_);
  }
  /// Reads until `text` has come, or the client sends no more.
  [[nodiscard]] std::string read_up_to(std::string_view text) const {
    std::string all;
    char buffer[4096];
    while (all.find(text) == std::string::npos) {
      const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0)
        break;
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  void read_to(std::string_view text) const {
    if (read_up_to(text).find(text) == std::string::npos)
      throw std::runtime_error("the client is gone");
  }
  /// In a thread of its own: accepts, reads a request's head and responds to it. Returns what it
  /// has read.
  [[nodiscard]] std::string respond() {
    accept();
    auto head = read_up_to("\r\n\r\n");
    // The client may be gone.
    constexpr std::string_view kResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    if (head.find("\r\n\r\n") != std::string::npos)
      (void)::send(socket_, kResponse.data(), kResponse.size(), MSG_NOSIGNAL);
    return head;
  }
  void send(std::string_view text) const {
    REQUIRE(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
  }
  /// Whether the client has closed its side, and sent nothing more.
  [[nodiscard]] bool is_closed() const {
    char byte = 0;
    const auto got = ::recv(socket_, &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  int listener_;
  int socket_ = -1;
  int port_ = 0;
};

enum class Ended { kDone, kNotDone, kUnknown };

Ended call(const std::string& url, const std::stop_token& stop) {
  pawl::HttpOptions options;
  options.url = {url, ""};
  const HttpHandler handler(options, 1000);
  pawl::MessageFields fields;
  fields.topic = "payments";
  fields.value = "{}";
  // The call's own time is long: what ends it is the stop.
  pawl::Lease lease({.key = "key",
                     .deadline = std::chrono::steady_clock::now() + std::chrono::hours(1),
                     .stop_token = stop});
  try {
    (void)handler.call(lease, pawl::Message(fields));
    return Ended::kDone;
  } catch (const NotDone&) {
    return Ended::kNotDone;
  } catch (const UnknownAnswer&) {
    return Ended::kUnknown;
  }
}

/// The call in a thread of its own; what it ended with, within a bound.
class Calling {
 public:
  Calling(std::string url, const std::stop_token& stop)
      : ended_(std::async(std::launch::async,
                          [url = std::move(url), stop] { return call(url, stop); })) {}
  [[nodiscard]] Ended ended() {
    if (ended_.wait_for(60s) != std::future_status::ready)
      throw std::runtime_error("the call goes on");
    return ended_.get();
  }

 private:
  std::future<Ended> ended_;
};

std::string url_of(const OneConnection& server, const std::string& scheme = "http") {
  return fmt::format("{}://127.0.0.1:{}/", scheme, server.port());
}

/// Connects to the server. With SOCK_NONBLOCK it does not wait for the handshake.
int connect_to(const OneConnection& server, int flags = 0) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  (void)::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  return socket;
}

}  // namespace

TEST_CASE("a call that is told to stop before it begins sends nothing") {
  const OneConnection server;
  std::stop_source stop;
  stop.request_stop();
  CHECK(call(url_of(server), stop.get_token()) == Ended::kNotDone);
}

TEST_CASE("a call that is told to stop while it connects has done nothing") {
  // Its handshake is not answered: the queue of those that nobody accepts is full.
  const OneConnection server(0);
  std::vector<int> waiting;
  for (int i = 0; i < 8; ++i)
    waiting.push_back(connect_to(server, SOCK_NONBLOCK));
  std::stop_source stop;
  Calling calling(url_of(server), stop.get_token());
  stop.request_stop();
  CHECK(calling.ended() == Ended::kNotDone);
  for (const auto socket : waiting)
    ::close(socket);
}

TEST_CASE("a call that is told to stop during its TLS handshake has done nothing") {
  OneConnection server;
  std::stop_source stop;
  Calling calling(url_of(server, "https"), stop.get_token());
  server.accept();
  server.read_to("\x16\x03");
  stop.request_stop();
  CHECK(calling.ended() == Ended::kNotDone);
}

TEST_CASE("a call that is told to stop behind its request closes its connection, and is unknown") {
  const auto sent = GENERATE(std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Le"),
                             std::string("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
  OneConnection server;
  std::stop_source stop;
  Calling calling(url_of(server), stop.get_token());
  server.accept();
  server.read_to("\r\n\r\n");
  if (!sent.empty())
    server.send(sent);
  stop.request_stop();
  CHECK(server.is_closed());
  CHECK(calling.ended() == Ended::kUnknown);
}

TEST_CASE("a call whose response is whole is done, whenever it is told to stop") {
  OneConnection server;
  std::stop_source stop;
  Calling calling(url_of(server), stop.get_token());
  server.accept();
  server.read_to("\r\n\r\n");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  CHECK(calling.ended() == Ended::kDone);
  stop.request_stop();
}

TEST_CASE("calls that are told to stop at any moment end, and send nothing if not done") {
  for (int round = 0; round < 200; ++round) {
    OneConnection server;
    auto received = std::async(std::launch::async, [&] { return server.respond(); });
    std::stop_source stop;
    Calling calling(url_of(server), stop.get_token());
    // Later in each round, over about the time that a whole call takes.
    std::jthread other([&, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
      stop.request_stop();
    });
    const auto ended = calling.ended();
    // If the call did not connect, the server accepts this one, which sends nothing.
    ::close(connect_to(server));
    const auto request = received.get();
    CAPTURE(round, request);
    if (ended == Ended::kNotDone)
      CHECK(request.empty());
    if (ended == Ended::kDone)
      CHECK(request.find("\r\n\r\n") != std::string::npos);
  }
}

TEST_CASE("which connections another request may use") {
  const ConnectionState clean{.keep_alive = true, .whole = true, .open = true};
  CHECK(may_reuse(clean));
  const auto but = [&](auto change) {
    auto state = clean;
    change(state);
    return may_reuse(state);
  };
  CHECK_FALSE(but([](auto& state) { state.keep_alive = false; }));
  CHECK_FALSE(but([](auto& state) { state.whole = false; }));
  CHECK_FALSE(but([](auto& state) { state.open = false; }));
  CHECK_FALSE(but([](auto& state) { state.excess = true; }));
  CHECK_FALSE(but([](auto& state) { state.has_unread = true; }));
}

TEST_CASE("a header without a value is sent, whatever white space it has") {
  CHECK(line_for_curl("X: a") == "X: a");
  CHECK(line_for_curl("X: a ") == "X: a ");
  for (const auto* header : {"X: ", "X:  ", "X: \t", "X: \v\f "}) {
    CAPTURE(header);
    CHECK(line_for_curl(header) == "X;");
  }
}
