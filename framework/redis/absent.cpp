// What takes the place of transport.cpp in a build without PAWL_REDIS.
#include <fmt/format.h>

#include <utility>

#include "redis/error.hpp"
#include "redis/transport.hpp"

namespace pawl::redis {

struct Transport::Link {};

std::string library_version() {
  return "";
}

Transport::Transport(const Address& /*address*/, const std::optional<TlsSettings>& /*tls*/,
                     std::chrono::milliseconds timeout, std::string server)
    : server_(std::move(server)), timeout_(timeout) {
  give_up();
}

Transport::~Transport() = default;
Transport::Transport(Transport&&) noexcept = default;

void Transport::give_up() {
  throw Error(Error::Kind::kConnection,
              fmt::format("{}: this program was built without Redis (PAWL_REDIS=OFF)", server_));
}

std::vector<Reply> Transport::exchange(const std::vector<Command>& /*commands*/) {
  give_up();
}

bool Transport::alive() const {
  return false;
}

bool Transport::stale() const {
  return true;
}

void Transport::close() noexcept {}

}  // namespace pawl::redis
