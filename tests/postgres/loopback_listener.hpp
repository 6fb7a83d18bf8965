#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace pawl::test {

/// A socket that listens on a free port of 127.0.0.1. Nobody accepts unless its user does.
class LoopbackListener {
 public:
  explicit LoopbackListener(int backlog)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, raw, size) != 0 || ::listen(socket_, backlog) != 0 ||
        ::getsockname(socket_, raw, &size) != 0)
      throw std::system_error(errno, std::generic_category(), "listen");
    port_ = ntohs(address.sin_port);
  }
  ~LoopbackListener() { ::close(socket_); }
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  [[nodiscard]] int get() const { return socket_; }
  [[nodiscard]] int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace pawl::test
