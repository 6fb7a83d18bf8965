#include "kafka_proxy.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <list>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "testing/proxy_pipe.hpp"

namespace pawl::test {
namespace {

using testing::Descriptor;

sockaddr_in local(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + size; ++i)
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Takes the first whole message off: its size, and so many bytes. Empty: it is not there yet.
std::string take_message(std::string& bytes) {
  if (bytes.size() < 4)
    return {};
  const std::size_t size = 4 + number(bytes, 0, 4);
  if (bytes.size() < size)
    return {};
  auto message = bytes.substr(0, size);
  bytes.erase(0, size);
  return message;
}

/// False: the peer is gone. Waits while it takes nothing; on a machine's own network it soon does.
bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR)
      return false;
    if (sent > 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

/// Used by the proxy's thread alone.
class KafkaProxy::Loop {
 public:
  explicit Loop(KafkaProxy& proxy) : proxy_(proxy) {}

  void run() {
    while (!proxy_.stopping_) {
      wait();
      if (is_away())
        links_.clear();
      links_.remove_if([this](Link& link) { return !serve(link); });
      accept_one();
    }
  }

 private:
  struct Link {
    Descriptor client;
    Descriptor broker;
    short client_has = 0;  ///< of poll(2)
    short broker_has = 0;
    std::string requests;
    std::string answers;
    std::optional<std::uint32_t> doomed;  ///< the correlation id of the answer that must not arrive
    bool silent = false;
  };

  bool is_away() {
    const std::lock_guard lock(proxy_.mutex_);
    return proxy_.away_;
  }

  void wait() {
    std::vector<pollfd> polled{{proxy_.wake_, POLLIN, 0}, {proxy_.listener_, POLLIN, 0}};
    for (const auto& link : links_) {
      polled.push_back({link.client.get(), POLLIN, 0});
      polled.push_back({link.broker.get(), POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), -1) < 0)
      return;
    if (polled[0].revents != 0) {
      std::uint64_t ignored = 0;
      static_cast<void>(::read(proxy_.wake_, &ignored, sizeof ignored));
    }
    connecting_ = polled[1].revents != 0;
    std::size_t at = 2;
    for (auto& link : links_) {
      link.client_has = polled[at++].revents;
      link.broker_has = polled[at++].revents;
    }
  }

  void accept_one() {
    if (!std::exchange(connecting_, false))
      return;
    Link link;
    link.client = Descriptor(::accept4(proxy_.listener_, nullptr, nullptr, SOCK_CLOEXEC));
    link.broker = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = local(proxy_.broker_port_);
    if (!link.client.open() || is_away() ||
        ::connect(link.broker.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
            0)
      return;
    const int on = 1;
    for (const int socket : {link.client.get(), link.broker.get()})
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    links_.push_back(std::move(link));
  }

  /// Appends what is there; false: the peer is gone.
  static bool receive(int socket, std::string& bytes) {
    static thread_local std::array<char, 65536> buffer;
    const auto got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got > 0)
      bytes.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && errno == EINTR);
  }

  /// False: the connection is over.
  bool serve(Link& link) {
    if (std::exchange(link.client_has, 0) != 0 &&
        !(receive(link.client.get(), link.requests) && forward_requests(link)))
      return false;
    return std::exchange(link.broker_has, 0) == 0 ||
           (receive(link.broker.get(), link.answers) && forward_answers(link));
  }

  bool forward_requests(Link& link) {
    for (auto request = take_message(link.requests); !request.empty();
         request = take_message(link.requests)) {
      // Size, number of the request, its version, correlation id.
      const auto fault = judge(static_cast<KafkaRequest>(number(request, 4, 2)));
      if (fault == KafkaFault::kCutBefore) {
        happened();
        return false;
      }
      if (fault == KafkaFault::kCutAfter)
        link.doomed = number(request, 8, 4);
      if (!link.silent && !send_all(link.broker.get(), request))
        return false;
      if (fault == KafkaFault::kSwallowed) {
        link.silent = true;
        happened();
      }
    }
    return true;
  }

  bool forward_answers(Link& link) {
    for (auto answer = take_message(link.answers); !answer.empty();
         answer = take_message(link.answers)) {
      if (link.doomed == number(answer, 4, 4)) {
        happened();
        return false;
      }
      if (!link.silent && !send_all(link.client.get(), answer))
        return false;
    }
    return true;
  }

  std::optional<KafkaFault> judge(KafkaRequest request) {
    const std::lock_guard lock(proxy_.mutex_);
    if (!proxy_.armed_ || proxy_.armed_->request != request)
      return std::nullopt;
    goes_away_ = proxy_.armed_->away;
    const auto fault = proxy_.armed_->fault;
    proxy_.armed_.reset();
    return fault;
  }

  void happened() {
    const std::lock_guard lock(proxy_.mutex_);
    proxy_.happened_ = true;
    proxy_.away_ = goes_away_;
    if (goes_away_)
      proxy_.ring();
  }

  KafkaProxy& proxy_;
  std::list<Link> links_;
  bool connecting_ = false;
  bool goes_away_ = false;
};

KafkaProxy::KafkaProxy(std::uint16_t broker_port)
    : broker_port_(broker_port),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  auto address = local(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || wake_ < 0 || ::bind(listener_, generic, size) != 0 ||
      ::listen(listener_, SOMAXCONN) != 0 || ::getsockname(listener_, generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "the proxy cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Loop(*this).run(); });
}

KafkaProxy::~KafkaProxy() {
  stopping_ = true;
  ring();
  thread_.join();
  ::close(listener_);
  ::close(wake_);
}

void KafkaProxy::ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one));
}

std::string KafkaProxy::bootstrap() const {
  return fmt::format("127.0.0.1:{}", port_);
}

void KafkaProxy::arm(KafkaRequest request, KafkaFault fault, bool away) {
  const std::lock_guard lock(mutex_);
  armed_ = Armed{request, fault, away};
  happened_ = false;
}

bool KafkaProxy::happened() const {
  const std::lock_guard lock(mutex_);
  return happened_;
}

void KafkaProxy::come_back() {
  const std::lock_guard lock(mutex_);
  away_ = false;
}

}  // namespace pawl::test
