#include "free_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "testing/proxy_pipe.hpp"

namespace pawl::test {

std::uint16_t free_port() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<std::uint16_t>(12000 + random() % 20000);
    const testing::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return port;
  }
}

}  // namespace pawl::test
