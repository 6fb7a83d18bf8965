// The pattern that is often written by hand: a lock in Redis with a time (SET NX EX), the call, and
// "completed" in its place. One message; docs/external-calls.md compares it with a lease.
//
// setnx_consumer REDIS API_PORT KEY SECONDS [freeze]: freeze: the process stands still (SIGSTOP)
// once it has the lock.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "redis/connection.hpp"

namespace {

using pawl::redis::Reply;

void charge(int port, const std::string& key) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const std::string request = "POST /charges HTTP/1.1\r\nHost: api\r\nIdempotency-Key: " + key +
                              "\r\nContent-Length: 0\r\n\r\n";
  char answer[4096];
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      ::recv(socket, answer, sizeof answer, 0) <= 0)
    std::exit(1);
  ::close(socket);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5)
    return 2;
  pawl::redis::Settings settings;
  settings.address = pawl::redis::parse_address(argv[1]);
  pawl::redis::Connection redis(settings, *settings.address);
  const std::string key = argv[3];
  while (redis.run({"SET", key, "PROCESSING", "NX", "EX", argv[4]}).type == Reply::Type::kNil) {
    if (redis.run({"GET", key}).text == "COMPLETED")
      return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (argc > 5)
    ::raise(SIGSTOP);
  charge(std::atoi(argv[2]), key);
  redis.run({"SET", key, "COMPLETED"});
  return 0;
}
