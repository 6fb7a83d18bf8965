#include "postgres/socket_wait.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "postgres/error.hpp"

namespace pawl::postgres {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{50};
/// What poll is given at most; it is called again.
constexpr milliseconds kLongest{3600000};

}  // namespace

Waited wait_for_socket(const PGconn* raw, short events,
                       const std::optional<steady_clock::time_point>& until,
                       const std::atomic<bool>* unwanted) {
  while (true) {
    if (unwanted != nullptr && unwanted->load())
      return Waited::kUnwanted;
    auto pause = unwanted != nullptr ? kLook : kLongest;
    if (until) {
      const auto left = std::chrono::ceil<milliseconds>(*until - steady_clock::now());
      if (left.count() <= 0)
        return Waited::kLate;
      pause = std::min(pause, left);
    }
    pollfd descriptor{PQsocket(raw), events, 0};
    const int ready = ::poll(&descriptor, 1, static_cast<int>(pause.count()));
    if (ready > 0)
      return Waited::kReady;
    if (ready < 0 && errno != EINTR)
      throw Error::connection_lost("poll failed on the PostgreSQL connection");
  }
}

}  // namespace pawl::postgres
