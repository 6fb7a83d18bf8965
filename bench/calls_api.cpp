// An HTTP API that takes a given time for each request and almost none of the processor's, for
// `scripts/bench calls`: one thread, whatever the number of connections, which stay open.
//
//   pawl-bench-api MILLISECONDS
//
// Prints its port, and serves until SIGTERM; then "requests=... most_at_once=...".
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kEndOfHead = "\r\n\r\n";

int require(int result, const char* what) {
  if (result < 0)
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

struct Connection {
  std::uint64_t serial = 0;  // descriptors come again
  std::string received;
};

struct Answer {
  Clock::time_point due;
  int socket = -1;
  std::uint64_t serial = 0;
};

/// Bytes of the request at the beginning of `received`; 0: it is not whole.
std::size_t request_size(std::string& received) {
  const auto head = received.find(kEndOfHead);
  if (head == std::string::npos)
    return 0;
  std::string lower = received.substr(0, head);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  std::size_t size = head + std::strlen(kEndOfHead);
  const std::string name = "\r\ncontent-length:";
  if (const auto field = lower.find(name); field != std::string::npos)
    size += std::strtoul(lower.c_str() + field + name.size(), nullptr, 10);
  return received.size() >= size ? size : 0;
}

class Api {
 public:
  explicit Api(std::chrono::milliseconds time)
      : time_(time),
        epoll_(require(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        listener_(require(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket")),
        timer_(require(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), "timerfd_create")) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    require(bind(listener_, raw, size), "bind");
    require(listen(listener_, SOMAXCONN), "listen");
    require(getsockname(listener_, raw, &size), "getsockname");
    port_ = ntohs(address.sin_port);
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    signals_ = require(signalfd(-1, &ending, SFD_NONBLOCK), "signalfd");
    for (const int descriptor : {listener_, timer_, signals_})
      watch(descriptor);
  }

  [[nodiscard]] int port() const { return port_; }

  /// Until SIGTERM.
  void serve() {
    std::array<epoll_event, 256> events{};
    while (true) {
      const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const int descriptor = events.at(static_cast<std::size_t>(i)).data.fd;
        if (descriptor == signals_)
          return;
        if (descriptor == listener_)
          accept_one();
        else if (descriptor != timer_)
          receive(descriptor);
      }
      answer_due();
    }
  }

  void report() const {
    std::printf("requests=%ld most_at_once=%zu\n", requests_, most_at_once_);
    std::fflush(stdout);
  }

 private:
  void watch(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    require(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
  }

  void accept_one() {
    const int made = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (made < 0)
      return;
    const int on = 1;
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_[made].serial = ++serial_;
    watch(made);
  }

  void receive(int socket) {
    std::array<char, 16384> buffer;
    const auto got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN) {
        connections_.erase(socket);
        close(socket);
      }
      return;
    }
    auto& [serial, received] = connections_[socket];
    received.append(buffer.data(), static_cast<std::size_t>(got));
    while (const auto size = request_size(received)) {
      received.erase(0, size);
      ++requests_;
      waiting_.push_back({Clock::now() + time_, socket, serial});
      most_at_once_ = std::max(most_at_once_, waiting_.size());
    }
  }

  /// All take the same time, so that the first to come is the first to be due.
  void answer_due() {
    while (!waiting_.empty() && waiting_.front().due <= Clock::now()) {
      const auto [due, socket, serial] = waiting_.front();
      waiting_.pop_front();
      if (const auto found = connections_.find(socket);
          found == connections_.end() || found->second.serial != serial)
        continue;
      const auto body = R"({"charge":)" + std::to_string(++answers_) + "}";
      const auto text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
                        std::to_string(body.size()) + kEndOfHead + body;
      // So little always has room in a socket that has nothing else to send.
      (void)send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    }
    if (waiting_.empty() || waiting_.front().due == armed_for_)
      return;
    armed_for_ = waiting_.front().due;
    const auto since = armed_for_.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    itimerspec spec{};
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = std::chrono::nanoseconds(since - seconds).count();
    require(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr), "timerfd_settime");
  }

  const std::chrono::milliseconds time_;
  const int epoll_;
  const int listener_;
  const int timer_;
  int signals_ = -1;
  int port_ = 0;
  std::uint64_t serial_ = 0;
  std::unordered_map<int, Connection> connections_;
  std::deque<Answer> waiting_;
  Clock::time_point armed_for_;
  long requests_ = 0;
  long answers_ = 0;
  std::size_t most_at_once_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MILLISECONDS\n", argv[0]);
    return 2;
  }
  try {
    prctl(PR_SET_TIMERSLACK, 1UL);
    Api api{std::chrono::milliseconds(std::strtol(argv[1], nullptr, 10))};
    std::printf("%d\n", api.port());
    std::fflush(stdout);
    api.serve();
    api.report();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pawl-bench-api: %s\n", error.what());
    return 1;
  }
}
