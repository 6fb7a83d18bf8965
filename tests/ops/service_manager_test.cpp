#include "ops/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "prelude.hpp"

using pawl::ops::ServiceManager;
using namespace std::chrono_literals;

TEST_CASE("a service manager is found in the environment, and taken from there") {
  ::setenv("NOTIFY_SOCKET", "/run/notify", 1);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  const bool ours = GENERATE(true, false);
  ::setenv("WATCHDOG_PID", ours ? std::to_string(::getpid()).c_str() : "1", 1);
  const auto manager = ServiceManager::of_environment();
  CHECK(manager.is_there());
  CHECK(manager.watchdog() == (ours ? std::optional(30000ms) : std::nullopt));
  CHECK(std::getenv("NOTIFY_SOCKET") == nullptr);
  CHECK(std::getenv("WATCHDOG_USEC") == nullptr);
  CHECK_FALSE(ServiceManager::of_environment().is_there());
  manager.to_environment();
  CHECK(ServiceManager::of_environment().watchdog() == manager.watchdog());
}

TEST_CASE("times that are none are no watchdog") {
  for (const auto* time : {"", "0", "-1", "soon", "12s"}) {
    CAPTURE(time);
    ::setenv("WATCHDOG_USEC", time, 1);
    CHECK_FALSE(ServiceManager::of_environment().watchdog().has_value());
  }
}

TEST_CASE("nobody is told where nobody listens") {
  CHECK_FALSE(ServiceManager().ready());
  CHECK_FALSE(ServiceManager("/nowhere/notify", std::nullopt).ready());
  CHECK_FALSE(ServiceManager(std::string(200, 'x'), std::nullopt).ready());
}

TEST_CASE("an abstract socket is told, one line of status") {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto name = "pawl-test-" + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  const ServiceManager manager("@" + name, std::nullopt);
  CHECK(manager.status("good\nREADY=1"));
  std::array<char, 64> buffer{};
  const auto size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  REQUIRE(size > 0);
  CHECK(std::string(buffer.data(), static_cast<std::size_t>(size)) == "STATUS=good");
  ::close(socket);
}
