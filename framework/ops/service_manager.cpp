#include "ops/service_manager.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <ctime>

namespace pawl::ops {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string taken(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stopped == end && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

ServiceManager ServiceManager::of_environment() {
  auto socket = taken("NOTIFY_SOCKET");
  const auto time = number(taken("WATCHDOG_USEC"));
  const auto whom = number(taken("WATCHDOG_PID"));
  std::optional<milliseconds> watchdog;
  if (time && (!whom || *whom == ::getpid()))
    watchdog =
        std::max(milliseconds{1}, std::chrono::duration_cast<milliseconds>(microseconds(*time)));
  return {std::move(socket), watchdog};
}

void ServiceManager::to_environment() const {
  if (!socket_.empty())
    ::setenv("NOTIFY_SOCKET", socket_.c_str(), 1);
  if (watchdog_) {
    const auto time = std::chrono::duration_cast<microseconds>(*watchdog_);
    ::setenv("WATCHDOG_USEC", std::to_string(time.count()).c_str(), 1);
    ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  }
}

bool ServiceManager::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                          std::int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000));
}

bool ServiceManager::status(std::string_view line) const {
  return tell(fmt::format("STATUS={}", line.substr(0, line.find('\n'))));
}

bool ServiceManager::tell(std::string_view text) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path)
    return false;
  std::copy(socket_.begin(), socket_.end(), address.sun_path);
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  if (socket_.front() == '@') {
    address.sun_path[0] = '\0';
  } else {
    ++length;
  }
  const int handle = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0)
    return false;
  // A manager that does not read is not waited for.
  const auto sent = ::sendto(handle, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length);
  ::close(handle);
  return sent == static_cast<ssize_t>(text.size());
}

}  // namespace pawl::ops
