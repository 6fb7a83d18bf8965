#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "redis/error.hpp"
#include "redis/reply.hpp"
#include "redis/settings.hpp"
#include "redis/transport.hpp"

namespace pawl::redis {

/// A connection to a Redis that may keep what must not be lost: it is a master, and evicts nothing
/// when its memory is full. Both are asked at the connect; that they stay so is the operator's.
/// One thread at a time.
class Connection {
 public:
  /// Connects to the address, authenticates, chooses the database and asks. Throws Error.
  Connection(const Settings& settings, const Address& address);

  /// One round trip. Errors of the server are replies. Throws Error (kConnection, kMalformed).
  [[nodiscard]] std::vector<Reply> exchange(const std::vector<Command>& commands) {
    return transport_.exchange(commands);
  }
  /// Throws Error, also for an error of the server.
  Reply run(const Command& command);

  /// The server's error reply as an Error. Where it says that this is not the server to talk to
  /// (any more), the connection is closed: the next one may lead elsewhere.
  [[nodiscard]] Error refused(const Reply& reply, std::string_view command);

  [[nodiscard]] bool alive() const { return transport_.alive(); }
  [[nodiscard]] bool stale() const { return transport_.stale(); }
  /// "Redis 127.0.0.1:6379"
  [[nodiscard]] const std::string& server() const { return transport_.server(); }

 private:
  Transport transport_;
};

}  // namespace pawl::redis
