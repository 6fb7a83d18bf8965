#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::ops {

/// Tells the service manager that started this process how it is: systemd, or whoever serves a
/// socket as that does (sd_notify(3): a datagram of NAME=VALUE lines, a protocol that is promised
/// to stay). Without one nothing is told. Not thread-safe.
class ServiceManager {
 public:
  /// What the environment says: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, as systemd sets
  /// them. It is taken from there, so that processes that this one starts do not speak in its name.
  static ServiceManager of_environment();

  ServiceManager() = default;
  /// `socket`: a path, or a name of Linux' abstract ones behind an @; empty: nobody is told.
  ServiceManager(std::string socket, std::optional<std::chrono::milliseconds> watchdog)
      : socket_(std::move(socket)), watchdog_(watchdog) {}

  [[nodiscard]] bool is_there() const { return !socket_.empty(); }
  /// So long it waits for alive() before it ends the process; nullopt: it does not watch.
  [[nodiscard]] std::optional<std::chrono::milliseconds> watchdog() const { return watchdog_; }

  /// Each returns false when it could not be told: nothing depends on it.
  bool ready() const { return tell("READY=1"); }
  bool stopping() const { return tell("STOPPING=1"); }
  bool reloading() const;
  bool alive() const { return tell("WATCHDOG=1"); }
  /// One line for a person, as `systemctl status` shows it.
  bool status(std::string_view line) const;

  /// For a process that takes this one's place.
  void to_environment() const;

 private:
  bool tell(std::string_view text) const;

  std::string socket_;
  std::optional<std::chrono::milliseconds> watchdog_;
};

}  // namespace pawl::ops
