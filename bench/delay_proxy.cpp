// A network of a given latency on the way to PostgreSQL, for scripts/bench: every chunk arrives
// half a round trip later, in each direction. Any number of chunks is in the air at once, in order,
// so that only waiting for answers costs time, as on a real network. No bandwidth is modelled and
// nothing is understood of what passes.
//
//   pawl-bench-delay DATABASE_URL ROUND_TRIP_US
//
// Prints the URL that leads through it and serves until it is ended. One thread.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing/postgres_address.hpp"
#include "testing/proxy_pipe.hpp"

namespace {

using pawl::testing::Descriptor;
using pawl::testing::OutgoingBytes;
using pawl::testing::PostgresAddress;
using Clock = OutgoingBytes::Clock;

constexpr std::size_t kMostInTheAir = 64U << 20U;

void require(bool done, const char* what) {
  if (!done)
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

void tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

Descriptor listen_anywhere() {
  Descriptor listener{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              listen(listener.get(), SOMAXCONN) == 0,
          "cannot listen on 127.0.0.1");
  return listener;
}

int port_of(const Descriptor& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  require(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "cannot tell the port");
  return ntohs(address.sin_port);
}

Descriptor connect_to(const PostgresAddress& server) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &raw) != 0)
    return Descriptor{};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found{raw, &freeaddrinfo};
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket{::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol)};
    if (socket.open() && connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0)
      return socket;
  }
  return Descriptor{};
}

/// One direction of a connection.
struct Way {
  OutgoingBytes bytes;
  bool ended = false;  // the sender sends no more

  [[nodiscard]] short reading() const {
    return !ended && bytes.size() < kMostInTheAir ? POLLIN : short{0};
  }
  [[nodiscard]] short writing(Clock::time_point now) const {
    const auto due = bytes.next_due();
    return due && *due <= now ? POLLOUT : short{0};
  }
};

class Connection {
 public:
  Connection(Descriptor client, Descriptor server)
      : client_(std::move(client)), server_(std::move(server)) {
    tune(client_.get());
    tune(server_.get());
  }

  [[nodiscard]] bool over() const { return over_; }

  void ask(std::vector<pollfd>& polled, Clock::time_point now) const {
    add(polled, client_.get(), static_cast<short>(there_.reading() | back_.writing(now)));
    add(polled, server_.get(), static_cast<short>(back_.reading() | there_.writing(now)));
  }

  [[nodiscard]] std::optional<Clock::time_point> next_due(Clock::time_point now) const {
    std::optional<Clock::time_point> first;
    for (const auto* way : {&there_, &back_}) {
      const auto due = way->bytes.next_due();
      // What is due and not written waits for its socket, not for the clock.
      if (due && *due > now && (!first || *due < *first))
        first = due;
    }
    return first;
  }

  void serve(const pollfd& client, const pollfd& server, Clock::duration delay) {
    if ((client.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
      read(client_.get(), there_, delay);
    if ((server.revents & (POLLIN | POLLHUP | POLLERR)) != 0)
      read(server_.get(), back_, delay);
    write(there_, server_.get());
    write(back_, client_.get());
  }

 private:
  // Without interest not even an error may wake the loop: it would again and again.
  static void add(std::vector<pollfd>& polled, int socket, short events) {
    polled.push_back({events != 0 ? socket : -1, events, 0});
  }

  void read(int socket, Way& way, Clock::duration delay) {
    static std::array<char, 1U << 18U> buffer;
    const auto got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got > 0)
      way.bytes.push({buffer.data(), static_cast<std::size_t>(got)}, Clock::now() + delay);
    else if (got == 0)
      way.ended = true;
    else if (errno != EAGAIN && errno != EINTR)
      over_ = true;
  }

  void write(Way& way, int socket) {
    std::uint64_t ignored = 0;
    if (way.bytes.write_due(socket, Clock::now(), ignored) == OutgoingBytes::Result::kPeerGone)
      over_ = true;
    if (way.ended && way.bytes.empty())
      over_ = true;
  }

  Descriptor client_;
  Descriptor server_;
  Way there_;
  Way back_;
  bool over_ = false;
};

void wait(std::vector<pollfd>& polled, std::optional<Clock::time_point> until) {
  timespec timeout{};
  if (until) {
    const auto left = std::max(*until - Clock::now(), Clock::duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    timeout.tv_sec = seconds.count();
    timeout.tv_nsec = std::chrono::nanoseconds(left - seconds).count();
  }
  if (ppoll(polled.data(), polled.size(), until ? &timeout : nullptr, nullptr) < 0) {
    for (auto& entry : polled)
      entry.revents = 0;  // interrupted
  }
}

[[noreturn]] void serve(const Descriptor& listener, const PostgresAddress& server,
                        Clock::duration delay) {
  std::list<Connection> connections;
  std::vector<pollfd> polled;
  while (true) {
    const auto now = Clock::now();
    std::optional<Clock::time_point> until;
    polled.assign(1, {listener.get(), POLLIN, 0});
    for (const auto& connection : connections) {
      connection.ask(polled, now);
      const auto due = connection.next_due(now);
      if (due && (!until || *due < *until))
        until = due;
    }
    wait(polled, until);
    std::size_t at = 1;
    for (auto& connection : connections) {
      connection.serve(polled[at], polled[at + 1], delay);
      at += 2;
    }
    connections.remove_if([](const Connection& one) { return one.over(); });
    if (polled[0].revents != 0) {
      Descriptor client{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
      Descriptor onward = connect_to(server);
      if (client.open() && onward.open())
        connections.emplace_back(std::move(client), std::move(onward));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s DATABASE_URL ROUND_TRIP_US\n", argv[0]);
    return 2;
  }
  try {
    const auto server = pawl::testing::address_of(argv[1]);
    const auto delay = std::chrono::microseconds(std::strtol(argv[2], nullptr, 10)) / 2;
    // Timers that are late by the usual 50 us would make a fast network slower than it says.
    prctl(PR_SET_TIMERSLACK, 1UL);
    const auto listener = listen_anywhere();
    const auto port = std::to_string(port_of(listener));
    std::printf("%s\n", pawl::testing::with_address(argv[1], {"127.0.0.1", port}).c_str());
    std::fflush(stdout);
    serve(listener, server, delay);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl-bench-delay: %s\n", error.what());
    return 1;
  }
}
