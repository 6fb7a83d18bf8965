#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "redis/connection.hpp"
#include "redis/settings.hpp"

namespace pawl::redis {

/// Finds the master and connects to it. Any thread.
class Connector {
 public:
  explicit Connector(Settings settings) : settings_(std::move(settings)) {}

  /// With Sentinels asks one after the other, beginning with the one that led to a master last; a
  /// Sentinel that is behind may name one that is a replica by now, so the server is asked itself.
  /// Throws Error: with Sentinels kConnection, which says what each of them led to.
  /// `stop`, if it is given, is asked before each Sentinel but the first.
  [[nodiscard]] std::unique_ptr<Connection> connect(const std::function<bool()>& stop = {});

 private:
  [[nodiscard]] Address ask(const Address& sentinel) const;

  const Settings settings_;
  std::atomic<std::size_t> first_{0};
};

}  // namespace pawl::redis
