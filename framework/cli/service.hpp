#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "ops/service_manager.hpp"
#include "ops/ticker.hpp"

namespace pawl::cli {

/// Keeps the service manager informed while a command runs: ready from the start on, alive as long
/// as `silent_for` is short, and a line that says how it goes.
class Service {
 public:
  struct Facts {
    /// So long ago its own loops made a round.
    std::function<std::chrono::milliseconds()> silent_for;
    std::function<std::string()> line;
  };

  Service(ops::ServiceManager manager, Facts facts);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// It ends, or makes place for the process that a reload begins. From any thread.
  void stopping();
  void reloading();

 private:
  void tick();

  const ops::ServiceManager manager_;
  const Facts facts_;
  std::atomic<bool> ending_{false};
  std::string told_;
  ops::Ticker ticker_;
};

/// How often it tells that it is alive, and for how long it says so of loops that are silent. A
/// manager is to be told twice in its time (sd_watchdog_enabled(3)).
struct WatchdogTimes {
  std::chrono::milliseconds interval;
  std::chrono::milliseconds patience;
};
[[nodiscard]] WatchdogTimes watchdog_times(std::chrono::milliseconds watchdog);

}  // namespace pawl::cli
