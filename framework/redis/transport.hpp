#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/reply.hpp"
#include "redis/settings.hpp"

namespace pawl::redis {

/// The version of the client library; empty: this build has none, and cannot connect.
[[nodiscard]] std::string library_version();

/// A connection to a Redis or a Sentinel that sends commands and reads replies, and knows nothing
/// of what they mean. One thread at a time.
class Transport {
 public:
  /// Connects; with TLS also verifies whom to. `server`: what errors call it. Throws Error
  /// (kConnection) within the timeout, but for the look-up of a name: the resolver bounds that.
  Transport(const Address& address, const std::optional<TlsSettings>& tls,
            std::chrono::milliseconds timeout, std::string server);
  ~Transport();
  Transport(Transport&&) noexcept;
  Transport& operator=(Transport&&) = delete;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Sends all in one go, and returns a reply for each; errors of the server are replies. Throws
  /// Error (kConnection, kMalformed): then the connection is closed, so that a late reply is never
  /// taken for that to another command.
  [[nodiscard]] std::vector<Reply> exchange(const std::vector<Command>& commands);

  [[nodiscard]] bool alive() const;
  /// Nothing is asked, and yet there is something to be read: the server has closed it.
  [[nodiscard]] bool stale() const;
  void close() noexcept;
  /// "Redis 127.0.0.1:6379"
  [[nodiscard]] const std::string& server() const { return server_; }

 private:
  struct Link;

  [[noreturn]] void give_up();

  std::string server_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Link> link_;  ///< none once it is closed
};

}  // namespace pawl::redis
